import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { RoomEvent } from '../../src/protocol/index.ts';
import { skippableClock } from '../support/clocks/skippable-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import { ScriptedResident } from '../support/other-servers/scripted-resident.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { registerAdmin } from '../support/users/register-admin.ts';
import type { SlidingRoomJson, SlidingSyncJson } from '../support/users/sliding-client.ts';
import { enc, TestClient } from '../support/users/test-client.ts';

/** Milliseconds for which changes of memberships wait for the members of a room. */
const membersTimeout = 10_000;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a room joined without members, with a resident server that serves states at its own events only', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let anna: TestClient;
    let admin: TestClient | undefined;
    let servers = 0;
    const clock = skippableClock();
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test', { clock, config: { accounts: { allow_guest_access: true } } });
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());

    /** A room of a new scripted server, with the members Charlie and Derek or with its creator alone. */
    async function residentRoom({ withMembers = true } = {}) {
      const server = await several.scripted(`far${++servers}.test`);
      const resident = new ScriptedResident(server, 'a.test');
      const { roomId } = resident.room;
      const [charlie, derek] = ['charlie', 'derek'].map((name) => `@${name}:${server.name}`) as [
        string,
        string,
      ];
      for (const userId of withMembers ? [charlie, derek] : []) {
        resident.setState('m.room.member', { membership: 'join' }, userId, userId);
      }
      const path = `/rooms/${enc(roomId)}`;
      const join = async (user = anna) => {
        const { status, raw } = await user.call('POST', `/join/${enc(roomId)}`, {}, { via: server.name });
        assert.equal(status, 200, raw);
      };
      const members = async (user = anna) => {
        const { joined } = await user.do('GET', `${path}/joined_members`);
        return Object.keys(joined as object).sort();
      };
      const messages = async (user = anna) => {
        const { chunk } = await user.do('GET', `${path}/messages?dir=b&limit=50`);
        return (chunk as { content: { body?: string } }[]).flatMap(({ content }) => content.body ?? []);
      };
      return { server, resident, roomId, path, charlie, derek, join, members, messages };
    }

    it('requests the state at the previous event of the join from the server that answered the join', async () => {
      const { resident, charlie, derek, join, members } = await residentRoom();
      const last = [...resident.room.events.keys()].at(-1)!;
      await join();
      assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
      const requestedStates = resident.requestedStates();
      assert.deepEqual(
        [requestedStates[0], requestedStates.length <= 2],
        [`state_ids ${last}`, true],
        requestedStates.join(),
      );
      for (const request of requestedStates) assert.ok(request.endsWith(last), request);
      assert.deepEqual(resident.requestsTo('event_auth'), []);
    });

    it('does not send the accepted join as a PDU', async () => {
      const { resident, join, members } = await residentRoom();
      await join();
      await anna.say(resident.room.roomId, 'hello');
      await until(() => resident.received.length > 0);
      assert.deepEqual(
        resident.received.map(({ type }) => type),
        ['m.room.message'],
      );
      await members();
    });

    it('requests the state at the missing previous event of a gap that get_missing_events does not close', async () => {
      const { resident, path, join, members, messages } = await residentRoom();
      await join();
      await members();
      resident.say('lost');
      const topic = resident.setState('m.room.topic', { topic: 'missed' });
      const missing = resident.say('missing previous event');
      const between = resident.say('between');
      const last = resident.say('last');
      resident.missing = [between];
      const earlierRequests = resident.server.receivedRequests.length;
      await resident.send(last);
      await until(async () => (await messages()).includes('last'));
      assert.ok((await messages()).includes('between'));
      assert.equal((await anna.do('GET', `${path}/state/m.room.topic`))['topic'], 'missed');
      const endpoints = resident.server.receivedRequests
        .slice(earlierRequests)
        .filter(({ path }) => !path.includes('/backfill/'))
        .map(({ path, query }) => `${path.split('/')[4]} ${query.get('event_id') ?? path.split('/')[5]}`);
      assert.deepEqual(
        endpoints.toSorted(),
        [
          `event ${topic.event.eventId}`,
          `event ${missing.event.eventId}`,
          `get_missing_events ${resident.room.roomId}`,
          `state_ids ${missing.event.eventId}`,
        ].sort(),
      );
    });

    describe('while its members are not known', () => {
      const lazy = { room: { state: { lazy_load_members: true } } };

      /** Polls until a sync has an entry of the room; other data, such as presence, can come before it. */
      async function nextSyncWith(roomId: string, since: string): Promise<RoomEntry> {
        const { rooms, next_batch } = await anna.sync(since, { timeout: 60_000 });
        return rooms?.join?.[roomId] ?? nextSyncWith(roomId, next_batch);
      }

      it('leaves the room out of syncs without lazy_load_members until its members are known, and then ends a waiting sync', async () => {
        const { resident, roomId, charlie, derek, join } = await residentRoom();
        const sinceBeforeJoin = (await anna.sync()).next_batch;
        const release = resident.holdState();
        await join();
        await resident.send(resident.say('first', charlie));
        await until(async () => {
          const { rooms } = await anna.sync(undefined, { filter: lazy });
          return bodies(rooms?.join?.[roomId]).includes('first');
        });
        assert.equal((await anna.sync()).rooms?.join?.[roomId], undefined);
        const { rooms: early, next_batch: since } = await anna.sync(sinceBeforeJoin);
        assert.equal(early?.join?.[roomId], undefined);
        const waiting = nextSyncWith(roomId, since);
        release();
        const entry = await waiting;
        assert.deepEqual(bodies(entry), ['first']);
        assert.deepEqual(membersIn(entry), [anna.id, charlie, resident.room.creator, derek].sort());
      });

      it('adds the room to syncs after its completion, even if this adds no member', async () => {
        const { resident, roomId, join } = await residentRoom({ withMembers: false });
        resident.heroes = [resident.room.creator];
        const release = resident.holdState();
        await join();
        const { rooms, next_batch: since } = await anna.sync();
        assert.equal(rooms?.join?.[roomId], undefined);
        const waiting = nextSyncWith(roomId, since);
        release();
        const entry = await waiting;
        assert.deepEqual(membersIn(entry), [anna.id, resident.room.creator].sort());
      });

      it('accepts messages that follow an event of an earlier join, whose state was never completed', async () => {
        const { resident, roomId, path, charlie, derek, join, members, messages } = await residentRoom();
        const release = resident.holdState();
        await join();
        const first = resident.say('first', charlie);
        await resident.send(first);
        await until(async () => {
          const { rooms } = await anna.sync(undefined, { filter: lazy });
          return bodies(rooms?.join?.[roomId]).includes('first');
        });
        await anna.do('POST', `${path}/leave`, {});
        await until(() => resident.received.some(({ content }) => content['membership'] === 'leave'));
        resident.accept(resident.received.at(-1)!);
        await join();
        release();
        assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
        await resident.send(resident.merge('late', first));
        await until(async () => (await messages()).includes('late'));
      });

      it('accepts typing notifications, receipts and to-device messages of members that are not known', async () => {
        const { resident, roomId, charlie, derek, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const { next_batch: since } = await anna.sync(undefined, { filter: lazy });
        const eventId = await anna.say(roomId, 'read this');
        await resident.sendEdu('m.typing', { room_id: roomId, user_id: charlie, typing: true });
        const receipt = { event_ids: [eventId], data: { ts: 1 } };
        await resident.sendEdu('m.receipt', { [roomId]: { 'm.read': { [derek]: receipt } } });
        await resident.sendEdu('m.direct_to_device', {
          sender: derek,
          type: 'm.test',
          message_id: 'one',
          messages: { [anna.id]: { '*': { text: 'hello' } } },
        });
        await until(async () => {
          const answer: { to_device?: { events?: unknown[] } } & Awaited<ReturnType<TestClient['sync']>> =
            await anna.sync(since, { filter: lazy });
          const { rooms, to_device: toDevice } = answer;
          const ephemeral = JSON.stringify(rooms?.join?.[roomId]?.ephemeral ?? {});
          return ephemeral.includes(charlie) && ephemeral.includes(derek) && toDevice?.events?.length === 1;
        });
        release();
        await members();
      });

      it('lets a second local user join, leave, be kicked and banned by a remote user, and join again', async () => {
        const { resident, roomId, path, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const alan = await a.registerClient(`alan${servers}`);
        const isJoined = async () =>
          ((await alan.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(roomId);
        await join(alan);
        assert.equal(await isJoined(), true);
        await alan.do('POST', `${path}/leave`, {});
        assert.equal(await isJoined(), false);
        await until(() =>
          resident.received.some(
            ({ sender, content }) => sender === alan.id && content['membership'] === 'leave',
          ),
        );
        resident.accept(resident.received.at(-1)!);
        await join(alan);
        assert.equal(await isJoined(), true);
        for (const membership of ['leave', 'ban', 'leave']) {
          await resident.send(
            resident.setState('m.room.member', { membership }, alan.id, resident.room.creator),
          );
          await until(async () => !(await isJoined()));
        }
        await join(alan);
        assert.equal(await isJoined(), true);
        release();
        assert.ok((await members()).includes(alan.id));
        assert.equal(await isJoined(), true);
      });

      it('refuses a guest with 403 M_GUEST_ACCESS_FORBIDDEN where guests may not join, without a request to another server', async () => {
        const { resident, roomId, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const registration = await a.api('POST', '/_matrix/client/v3/register', {
          query: { kind: 'guest' },
          body: {},
        });
        const [userId, deviceId, token] = ['user_id', 'device_id', 'access_token'].map((name) =>
          String(registration.body[name]),
        ) as [string, string, string];
        const guest = new TestClient(a, { userId, deviceId, token });
        const requests = () => resident.requestsTo('make_join').length;
        const before = requests();
        const { status, body } = await guest.call('POST', `/join/${enc(roomId)}`, {});
        assert.deepEqual([status, body['errcode']], [403, 'M_GUEST_ACCESS_FORBIDDEN']);
        assert.equal(requests(), before);
        release();
        await members();
      });

      it('answers GET /state/m.room.member/{userId} when the membership is known, and other state at once', async () => {
        const { resident, path, charlie, join } = await residentRoom();
        const release = resident.holdState();
        await join();
        assert.equal((await anna.do('GET', `${path}/state/m.room.member/${anna.id}`))['membership'], 'join');
        assert.ok((await anna.do('GET', `${path}/state/m.room.create`))['room_version']);
        const member = anna.do('GET', `${path}/state/m.room.member/${charlie}`);
        release();
        assert.equal((await member)['membership'], 'join');
      });

      it('lets users be kicked and banned when no server provides the members', async () => {
        const { server, resident, path, charlie, derek, join } = await residentRoom();
        const levels = { users: { [resident.room.creator]: 100, [anna.id]: 100 } };
        resident.setState('m.room.power_levels', levels);
        const unavailable = () => [403, { errcode: 'M_FORBIDDEN', error: 'Refused' }] as const;
        for (const endpoint of ['state_ids', 'state']) {
          server.on(`GET /_matrix/federation/v1/${endpoint}/`, unavailable);
        }
        await join();
        const changes = Promise.all([
          anna.call('POST', `${path}/kick`, { user_id: charlie }),
          anna.call('POST', `${path}/ban`, { user_id: derek }),
          anna.call('POST', `${path}/unban`, { user_id: `@other:${server.name}` }),
        ]);
        const [kick, ban, unban] = await clock.skipping(membersTimeout, changes);
        assert.deepEqual(
          [kick.status, ban.status, unban.status],
          [200, 200, 504],
          kick.raw + ban.raw + unban.raw,
        );
        await until(() => resident.received.length === 2);
        assert.equal((await anna.call('POST', `${path}/unban`, { user_id: derek })).status, 200);
      });

      it('refuses joins and knocks of other servers with 404 M_NOT_FOUND', async () => {
        const { resident, roomId, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const near = await several.scripted(`near${servers}.test`);
        const user = `@visitor:near${servers}.test`;
        const [v1, v2] = ['/_matrix/federation/v1', '/_matrix/federation/v2'];
        for (const membership of ['join', 'knock']) {
          const { event } = resident.room.build({
            type: 'm.room.member',
            content: { membership },
            stateKey: user,
            sender: user,
          });
          const make = `${v1}/make_${membership}/${enc(roomId)}/${enc(user)}?ver=11`;
          const version = membership === 'join' ? v2 : v1;
          const send = `${version}/send_${membership}/${enc(roomId)}/${enc(event.eventId)}`;
          for (const answer of [
            await near.request('a.test', 'GET', make),
            await near.request('a.test', 'PUT', send, event.pdu),
          ]) {
            assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND'], membership);
          }
        }
        release();
        await members();
      });

      it('accepts device list and signing key updates of members that are not known yet', async () => {
        const { resident, roomId, derek, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const since = (await anna.sync(undefined, { filter: lazy })).next_batch;
        await resident.sendEdu('m.device_list_update', {
          user_id: derek,
          device_id: 'NEW',
          stream_id: 2,
          prev_id: [1],
          keys: { user_id: derek, device_id: 'NEW', algorithms: [], keys: {}, signatures: {} },
        });
        await resident.sendEdu('m.signing_key_update', {
          user_id: derek,
          master_key: { user_id: derek, usage: ['master'], keys: { 'ed25519:abc': 'abc' } },
        });
        release();
        await members();
        await until(async () => {
          const answer: { device_lists?: { changed?: string[] } } & object = await anna.sync(since, {
            filter: lazy,
          });
          return answer.device_lists?.changed?.includes(derek) === true;
        });
        assert.ok(roomId);
      });

      it('accepts a local alias and a new display name, and is in the user directory once its members are known', async () => {
        const { resident, roomId, path, charlie, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const alias = `#partial${servers}:a.test`;
        await anna.do('PUT', `/directory/room/${enc(alias)}`, { room_id: roomId });
        const aliasResponse = await anna.do('GET', `/directory/room/${enc(alias)}`);
        assert.equal(aliasResponse['room_id'], roomId);
        assert.ok((aliasResponse['servers'] as string[]).includes(resident.server.name));
        const name = `Anna ${servers}`;
        await anna.do('PUT', `/profile/${enc(anna.id)}/displayname`, { displayname: name });
        await until(() => resident.received.some(({ content }) => content['displayname'] === name));
        assert.equal(
          (await anna.do('GET', `${path}/state/m.room.member/${enc(anna.id)}`))['displayname'],
          name,
        );
        release();
        assert.ok((await members()).includes(charlie));
        assert.equal(
          (await anna.do('GET', `${path}/state/m.room.member/${enc(anna.id)}`))['displayname'],
          name,
        );
        await until(async () => {
          const { results } = await anna.do('POST', '/user_directory/search', { search_term: charlie });
          return (results as { user_id: string }[]).some(({ user_id: userId }) => userId === charlie);
        });
      });

      it('counts the members of the room in summaries, also local users who join and leave meanwhile', async () => {
        const { resident, roomId, join, members } = await residentRoom();
        const path = `/_matrix/client/v1/room_summary/${enc(roomId)}`;
        const count = async () =>
          (await a.api('GET', path, { token: anna.token })).body['num_joined_members'];
        const release = resident.holdState();
        await join();
        const [bea, cleo] = [
          await a.registerClient(`bea${servers}`),
          await a.registerClient(`cleo${servers}`),
        ];
        for (const user of [bea, cleo]) await join(user);
        await cleo.do('POST', `/rooms/${enc(roomId)}/leave`, {});
        release();
        assert.equal((await members()).length, 5);
        await until(async () => (await count()) === 5, 'a count of five members');
      });

      it('deletes the room with all its data, and ends the requests for its members', async () => {
        const { resident, roomId, path, charlie, derek, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        admin ??= await registerAdmin(a);
        const deletion = { token: admin.token, body: { purge: true } };
        const deleted = await a.api('DELETE', `/_synapse/admin/v1/rooms/${enc(roomId)}`, deletion);
        assert.equal(deleted.status, 200, deleted.raw);
        const joinedRooms = (await anna.do('GET', '/joined_rooms'))['joined_rooms'] as string[];
        assert.ok(!joinedRooms.includes(roomId));
        assert.equal((await anna.call('GET', `${path}/state`)).status, 403);
        const requestsBefore = resident.server.receivedRequests.filter(({ path: to }) =>
          to.includes('state_ids'),
        ).length;
        release();
        // The completion of another room sends requests; that of the deleted room sends no more.
        const next = await residentRoom();
        await next.join();
        assert.ok((await next.members()).includes(next.charlie));
        const requestsAfter = resident.server.receivedRequests.filter(({ path: to }) =>
          to.includes('state_ids'),
        ).length;
        assert.equal(requestsAfter, requestsBefore);
        const details = await a.api('GET', `/_synapse/admin/v1/rooms/${enc(roomId)}`, { token: admin.token });
        assert.equal(details.status, 404, details.raw);
        // A user can join the deleted room again. Its resident server has accepted the leave of the deletion.
        const isLeave = ({ sender, content }: RoomEvent) =>
          sender === anna.id && content['membership'] === 'leave';
        await until(() => resident.received.some(isLeave));
        const leaveOfDeletion = resident.received.find(isLeave)!;
        resident.accept(leaveOfDeletion);
        await join();
        assert.ok(resident.joins.at(-1)!.authEventIds.includes(leaveOfDeletion.eventId));
        assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
      });

      it('places an event with one missing previous event, and corrects the state of the event when the room is complete', async () => {
        const { resident, path, charlie, derek, join, members, messages } = await residentRoom();
        const release = resident.holdState();
        await join();
        const messageOfCharlie = resident.say('known', charlie);
        await resident.send(messageOfCharlie);
        await until(async () => (await messages()).includes('known'));
        resident.room.backTo({ event: resident.joins.at(-1)! });
        const missing = resident.setState('m.room.topic', { topic: 'missed' });
        const merge = resident.merge('merge', messageOfCharlie, missing);
        await resident.send(merge);
        release();
        await until(async () => (await messages()).includes('merge'));
        assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
        assert.equal((await anna.do('GET', `${path}/state/m.room.topic`))['topic'], 'missed');
        const { state } = await anna.do('GET', `${path}/context/${enc(merge.event.eventId)}`);
        const inState = (state as { type: string; state_key: string }[])
          .filter(({ type }) => type === 'm.room.member')
          .map(({ state_key: key }) => key);
        assert.deepEqual(inState.sort(), [anna.id, charlie, resident.room.creator, derek].sort());
      });

      it('leaves the room out of sliding sync lists that require all members, and sends the memberships of the senders in other lists', async () => {
        const { resident, roomId, charlie, derek, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        await resident.send(resident.say('from charlie', charlie));
        const path = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';
        const roomWith = async (...required: [string, string][]) => {
          const lists = { all: { ranges: [[0, 50]], timeline_limit: 5, required_state: required } };
          const { body, raw, status } = await anna.request('POST', path, { lists });
          assert.equal(status, 200, raw);
          return (body as unknown as SlidingSyncJson).rooms[roomId];
        };
        const membersOf = (room: SlidingRoomJson | undefined) =>
          (room?.required_state ?? []).map(({ state_key: key }) => key).sort();
        await until(async () => membersOf(await roomWith(['m.room.member', '$LAZY'])).includes(charlie));
        assert.equal(await roomWith(['m.room.member', '*']), undefined);
        release();
        await members();
        await until(async () => (await roomWith(['m.room.member', '*'])) !== undefined);
        const allMembers = [anna.id, charlie, resident.room.creator, derek].sort();
        assert.deepEqual(membersOf(await roomWith(['m.room.member', '*'])), allMembers);
      });

      it('sends every changed membership in a gappy lazy sync after the room is complete', async () => {
        const { server, resident, roomId, charlie, derek, join, members } = await residentRoom();
        const release = resident.holdState();
        await join();
        const { next_batch: since } = await anna.sync(undefined, { filter: lazy });
        release();
        await members();
        const frank = `@frank:${server.name}`;
        const events = [
          resident.setState('m.room.member', { membership: 'join' }, frank, frank),
          resident.setState('m.room.member', { membership: 'leave' }, charlie, charlie),
          ...Array.from({ length: 5 }, (_, index) => resident.say(`message ${index}`, derek)),
        ];
        await resident.send(...events);
        const filter = { room: { ...lazy.room, timeline: { limit: 1 } } };
        await until(async () => {
          const entry = (await anna.sync(since, { filter })).rooms?.join?.[roomId];
          if (!bodies(entry).includes('message 4')) return false;
          const memberIds = membersIn(entry);
          return [frank, charlie, derek].every((userId) => memberIds.includes(userId));
        });
      });

      it('sends the room in lazy syncs with the memberships of the senders', async () => {
        const { resident, roomId, charlie, derek, join, members } = await residentRoom();
        let since = (await anna.sync(undefined, { filter: lazy })).next_batch;
        const release = resident.holdState();
        await join();
        const first = await anna.sync(since, { filter: lazy });
        assert.ok(first.rooms?.join?.[roomId]);
        since = first.next_batch;
        for (const [sender, body] of [
          [charlie, 'from charlie'],
          [derek, 'from derek'],
        ] as const) {
          await resident.send(resident.say(body, sender));
          let entry: RoomEntry | undefined;
          // A sync may also return for something else: for a changed device list, for instance.
          while (bodies(entry).length === 0) {
            const { rooms, next_batch: next } = await anna.sync(since, { filter: lazy, timeout: 60_000 });
            since = next;
            entry = rooms?.join?.[roomId];
            if (entry === undefined) continue;
            assert.deepEqual(bodies(entry), [body]);
            assert.deepEqual(membersIn(entry), [sender]);
          }
        }
        const initial = (await anna.sync(undefined, { filter: lazy })).rooms?.join?.[roomId];
        for (const userId of [anna.id, charlie, derek])
          assert.ok(membersIn(initial).includes(userId), userId);
        release();
        await members();
        await resident.send(resident.say('afterwards', charlie));
        await until(
          async () => bodies((await anna.sync(since, { filter: lazy })).rooms?.join?.[roomId]).length > 0,
        );
      });
    });
  });
});

interface RoomEntry {
  readonly state?: { readonly events?: readonly { type: string; state_key?: string }[] };
  readonly timeline: { readonly events: readonly { type: string; state_key?: string; content: object }[] };
}

const bodies = (entry: RoomEntry | undefined) =>
  (entry?.timeline.events ?? []).flatMap(({ content }) => ('body' in content ? String(content.body) : []));

/** The users whose memberships are in the state or the timeline of a room. */
const membersIn = (entry: RoomEntry | undefined) =>
  [
    ...new Set(
      [...(entry?.state?.events ?? []), ...(entry?.timeline.events ?? [])]
        .filter(({ type }) => type === 'm.room.member')
        .map(({ state_key: key = '' }) => key),
    ),
  ].sort();
