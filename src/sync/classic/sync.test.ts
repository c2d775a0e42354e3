import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import {
  enc,
  type JoinedRoomJson,
  type SyncJson,
  TestClient,
} from '../../../test/support/users/test-client.ts';
import { membersIn, texts, usersInRoomOn } from './test/shared-rooms.ts';

/** Minimum milliseconds of a timer that ends a long poll: other timers of the server are shorter or longer. */
const minPoll = 200_000;

/** Maximum milliseconds of a timer that ends a long poll. */
const maxPoll = 220_000;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`GET /sync, on ${database}`, () => {
    let server: TestServer;
    const clock = skippableClock();
    before(async () => {
      server = await startTestServer({ database, clock });
    });
    after(() => server.stop());
    const usersInRoom = usersInRoomOn(() => server);

    it('returns each change once', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      const first = await ben.sync();
      assert.deepEqual(Object.keys(first.rooms?.join ?? {}), [roomId]);
      await anna.say(roomId, 'one');
      await ben.say(roomId, 'two');
      const second = await ben.sync(first.next_batch);
      const room = second.rooms?.join?.[roomId];
      assert.deepEqual(texts(room), ['one', 'two']);
      assert.deepEqual([room?.timeline.limited, room?.state?.events], [false, []]);
      const eventOfBen = room?.timeline.events.find(({ sender }) => sender === ben.id);
      assert.match(String(eventOfBen?.unsigned?.['transaction_id']), /^txn/);
      assert.equal((await ben.sync(second.next_batch)).rooms, undefined);
      assert.deepEqual(texts((await ben.sync(first.next_batch)).rooms?.join?.[roomId]), ['one', 'two']);
    });

    it('starts the timeline of a rejoined room at the end of the last membership', async () => {
      const { anna, ben, cleo, roomId } = await usersInRoom(3);
      await anna.say(roomId, 'before');
      const before = await ben.sync();
      await ben.leave(roomId);
      await anna.say(roomId, 'meanwhile');
      const outside = await ben.sync(before.next_batch);
      await ben.join(roomId);
      await cleo.say(roomId, 'welcome back');
      const membersOf = (room: JoinedRoomJson | undefined) =>
        [...(room?.state?.events ?? []), ...(room?.timeline.events ?? [])]
          .filter(({ type, content }) => type === 'm.room.member' && content['membership'] === 'join')
          .map((event) => event.state_key)
          .sort();
      for (const since of [outside.next_batch, before.next_batch]) {
        const room = (await ben.sync(since)).rooms?.join?.[roomId];
        assert.equal(room?.timeline.limited, true);
        // The timeline begins after 'before', which the client has: otherwise `state` would be older than this message.
        assert.deepEqual(texts(room), ['meanwhile', 'welcome back']);
        assert.deepEqual([...new Set(membersOf(room))], [anna.id, ben.id, cleo.id].sort());
        const older = await ben.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, {
          dir: 'b',
          from: String(room?.timeline.prev_batch),
        });
        assert.ok(JSON.stringify(older).includes('"before"'));
      }
    });

    it('shows the events of the current state in the timeline of a joined room, except memberships, although the history visibility hides them', async () => {
      const { anna, ben, cleo } = await usersInRoom(3);
      const { next_batch } = await ben.sync();
      const roomId = await anna.createRoom();
      await anna.setState(roomId, 'm.room.history_visibility', { history_visibility: 'joined' });
      await cleo.join(roomId);
      await anna.setState(roomId, 'm.room.topic', { topic: 'old' });
      const topic = await anna.setState(roomId, 'm.room.topic', { topic: 'new' });
      for (let index = 0; index < 30; index++) await anna.say(roomId, 'hidden');
      await ben.join(roomId);
      await anna.say(roomId, 'shown');
      for (const since of [undefined, next_batch]) {
        const room = (await ben.sync(since)).rooms?.join?.[roomId];
        assert.deepEqual(texts(room), ['shown']);
        const topics = room?.timeline.events.filter(({ type }) => type === 'm.room.topic');
        assert.deepEqual(
          topics?.map(({ event_id }) => event_id),
          [topic],
        );
        assert.ok(room?.state?.events.every(({ event_id }) => event_id !== topic));
        const members = room?.timeline.events.filter(({ type }) => type === 'm.room.member');
        assert.deepEqual(
          members?.map(({ state_key }) => state_key),
          [anna.id, ben.id],
        );
      }
      await ben.leave(roomId);
      const filter = { room: { include_leave: true } };
      const left = (await ben.sync(undefined, { filter })).rooms?.leave?.[roomId];
      assert.ok(left?.timeline.events.every(({ type }) => type !== 'm.room.topic'));
    });

    it('answers 400 to unknown tokens, malformed filters and a malformed timeout', async () => {
      const { ben } = await usersInRoom(2);
      for (const since of ['x', 's1_999999999999', 't1_1_1', 's1_-1', '']) {
        assert.equal((await ben.call('GET', '/sync', undefined, { since })).status, 400, since);
      }
      assert.equal((await ben.call('GET', '/sync', undefined, { filter: '{' })).status, 400);
      assert.equal((await ben.call('GET', '/sync', undefined, { timeout: 'x' })).status, 400);
    });

    /** Returns the next answer with rooms or account data; other answers, about devices, are skipped. */
    const nextFor = async (client: TestClient, since: string): Promise<SyncJson> => {
      const answer = await client.sync(since, { timeout: maxPoll });
      return answer.rooms || answer.account_data ? answer : nextFor(client, answer.next_batch);
    };

    it('answers a waiting request when there is a message, account data, typing, an invite or the end of an invite', async () => {
      const { anna, ben, cleo, roomId } = await usersInRoom(3);
      await cleo.leave(roomId);
      const privateRoom = await anna.createRoom({});
      const changes: [description: string, client: TestClient, change: () => Promise<unknown>][] = [
        ['a message', ben, () => anna.say(roomId, 'wake up')],
        ['account data', ben, () => ben.do('PUT', `/user/${enc(ben.id)}/account_data/x`, { y: 1 })],
        [
          'typing',
          ben,
          () =>
            anna.do('PUT', `/rooms/${enc(roomId)}/typing/${enc(anna.id)}`, { typing: true, timeout: 9_000 }),
        ],
        ['an invitation', cleo, () => anna.membership('invite', privateRoom, cleo)],
        ['the end of an invite', cleo, () => anna.membership('kick', privateRoom, cleo)],
      ];
      for (const [description, client, change] of changes) {
        const { next_batch } = await client.sync();
        const waiting = nextFor(client, next_batch);
        await clock.untilTimerRuns([minPoll, maxPoll]);
        await change();
        const answer = await waiting;
        assert.ok(answer.rooms ?? answer.account_data, description);
      }
    });

    it('answers after the timeout, or at once with full_state', async () => {
      const { ben } = await usersInRoom(2);
      const { next_batch } = await ben.sync();
      assert.equal((await ben.sync(next_batch, { timeout: 20 })).rooms, undefined);
      assert.notEqual((await ben.sync(next_batch, { timeout: 60_000, full_state: true })).rooms, undefined);
      const user = await TestClient.register(server, 'roomless');
      await user.sync((await user.sync()).next_batch, { timeout: 60_000, full_state: true });
    });

    it('returns only new events for the token of a client after a restart', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      await anna.say(roomId, 'before');
      const { next_batch } = await ben.sync();
      await server.restart();
      await anna.say(roomId, 'after');
      const sync = await ben.sync(next_batch);
      assert.deepEqual(texts(sync.rooms?.join?.[roomId]), ['after']);
    });

    describe('GET /sync with a limited timeline', () => {
      const limitTwo = { filter: { room: { timeline: { limit: 2 } } } };

      it('returns the state that changed in the gap, and a prev_batch token into the gap', async () => {
        const { anna, ben, cleo, roomId } = await usersInRoom(3);
        const { next_batch } = await ben.sync();
        const inGap = await anna.setState(roomId, 'm.room.topic', { topic: 'gap' });
        await cleo.leave(roomId);
        for (const word of ['a', 'b', 'c']) await anna.say(roomId, word);
        const room = (await ben.sync(next_batch, limitTwo)).rooms?.join?.[roomId];
        assert.deepEqual([texts(room), room?.timeline.limited], [['b', 'c'], true]);
        const types = room?.state?.events.map(({ type }) => type).sort();
        assert.deepEqual(types, ['m.room.member', 'm.room.topic']);
        assert.equal(room?.state?.events.find(({ type }) => type === 'm.room.topic')?.event_id, inGap);
        assert.equal(room?.summary?.['m.joined_member_count'], 2);
        const query = { dir: 'b', from: String(room?.timeline.prev_batch), limit: 3 };
        const page = await ben.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, query);
        const [message, leave, topic] = page['chunk'] as { content: Record<string, unknown> }[];
        const contents = [message?.content['body'], leave?.content['membership'], topic?.content['topic']];
        assert.deepEqual(contents, ['a', 'leave', 'gap']);
      });

      it('returns the state before the timeline when the timeline changes the same entries', async () => {
        const { anna, ben, roomId } = await usersInRoom(2);
        const { next_batch } = await ben.sync();
        const first = await anna.setState(roomId, 'm.room.topic', { topic: 'one' });
        await anna.say(roomId, 'x');
        const second = await anna.setState(roomId, 'm.room.topic', { topic: 'two' });
        await anna.say(roomId, 'y');
        for (const since of [undefined, next_batch]) {
          const room = (await ben.sync(since, limitTwo)).rooms?.join?.[roomId];
          assert.deepEqual(room?.timeline.events.map(({ event_id }) => event_id)[0], second);
          const topic = room?.state?.events.find(({ type }) => type === 'm.room.topic');
          assert.equal(topic?.event_id, first);
          const after = (await ben.sync(since, { ...limitTwo, use_state_after: true })).rooms?.join?.[roomId];
          assert.equal(after?.state, undefined);
          assert.equal(
            after?.state_after?.events.find(({ type }) => type === 'm.room.topic')?.event_id,
            second,
          );
        }
      });

      it('returns state that the timeline filter hides', async () => {
        const { anna, ben, roomId } = await usersInRoom(2);
        const { next_batch } = await ben.sync();
        const topic = await anna.setState(roomId, 'm.room.topic', { topic: 'one' });
        await anna.say(roomId, 'x');
        for (const timeline of [{ types: ['m.room.message'] }, { limit: 0 }, { not_senders: [anna.id] }]) {
          const room = (await ben.sync(next_batch, { filter: { room: { timeline } } })).rooms?.join?.[roomId];
          assert.deepEqual(
            room?.state?.events.map(({ event_id }) => event_id),
            [topic],
            JSON.stringify(timeline),
          );
        }
      });
    });

    it('marks the timeline as limited if the limit of the timeline is 0 and there are events; messages alone make no entry of the room', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      const timelineOf = async (since: string | undefined, timeline: object, more: object = {}) =>
        (await ben.sync(since, { filter: { room: { timeline } }, ...more })).rooms?.join?.[roomId]?.timeline;
      const first = await timelineOf(undefined, { limit: 0 });
      assert.deepEqual([first?.events, first?.limited], [[], true]);
      const { next_batch } = await ben.sync();
      await anna.say(roomId, 'x');
      assert.equal(await timelineOf(next_batch, { limit: 0 }), undefined);
      await anna.setState(roomId, 'm.room.topic', { topic: 'one' });
      assert.equal((await timelineOf(next_batch, { limit: 0 }))?.limited, true);
      assert.equal((await timelineOf(next_batch, { types: [] }))?.limited, false);
    });

    it("does not return the whole room when the user's display name changes", async () => {
      const { ben, roomId } = await usersInRoom(2);
      const { next_batch } = await ben.sync();
      await ben.setState(roomId, 'm.room.member', { membership: 'join', displayname: 'New' }, ben.id);
      const room = (await ben.sync(next_batch)).rooms?.join?.[roomId];
      assert.deepEqual([room?.timeline.events.length, room?.state?.events.length], [1, 0]);
    });

    describe('GET /sync with lazy_load_members', () => {
      const lazy = (more: object = {}) => ({
        filter: { room: { state: { lazy_load_members: true, ...more }, timeline: { limit: 1 } } },
      });

      it('returns the memberships of timeline senders and heroes', async () => {
        const { anna, ben, cleo, roomId } = await usersInRoom(3);
        await anna.setState(roomId, 'm.room.name', { name: 'Name' });
        await cleo.say(roomId, 'hello');
        const first = await ben.sync(undefined, lazy());
        const room = first.rooms?.join?.[roomId];
        const heroes = (room?.summary?.['m.heroes'] ?? []) as string[];
        assert.deepEqual(heroes, []);
        assert.ok(membersIn(room?.state?.events).includes(ben.id));
        assert.ok(membersIn(room?.state?.events).includes(cleo.id));
        assert.ok(!membersIn(room?.state?.events).includes(anna.id), 'a room with a name needs no heroes');
        await anna.say(roomId, 'hello');
        await cleo.say(roomId, 'and hello');
        const lazyUnlimited = { filter: { room: { state: { lazy_load_members: true } } } };
        const second = await ben.sync(first.next_batch, lazyUnlimited);
        const members = membersIn(second.rooms?.join?.[roomId]?.state?.events);
        assert.ok(!members.includes(cleo.id), 'the client already has this membership');
        const repeated = await ben.sync(first.next_batch, lazyUnlimited);
        assert.deepEqual(
          membersIn(repeated.rooms?.join?.[roomId]?.state?.events),
          members,
          'a repeated request returns the same memberships, because the first answer may have been lost',
        );
        await anna.say(roomId, 'more');
        const third = await ben.sync(second.next_batch, lazy());
        assert.deepEqual(membersIn(third.rooms?.join?.[roomId]?.state?.events), []);
        const redundant = await ben.sync(second.next_batch, lazy({ include_redundant_members: true }));
        assert.deepEqual(membersIn(redundant.rooms?.join?.[roomId]?.state?.events), [anna.id]);
        await anna.setState(roomId, 'm.room.topic', { topic: 'Topic' });
        const full = await ben.sync((await ben.sync()).next_batch, { ...lazy(), full_state: true });
        const inFull = membersIn(full.rooms?.join?.[roomId]?.state?.events);
        assert.ok(!inFull.includes(cleo.id), 'a room with a name needs no heroes with full_state');
      });

      it('returns the memberships of heroes of a room without a name, with full_state as well', async () => {
        const { anna, ben, cleo, roomId } = await usersInRoom(3);
        const first = await ben.sync(undefined, lazy());
        const heroes = first.rooms?.join?.[roomId]?.summary?.['m.heroes'] as string[];
        assert.deepEqual(heroes.toSorted(), [anna.id, cleo.id].sort());
        const room = first.rooms?.join?.[roomId];
        const firstMembers = [...membersIn(room?.state?.events), ...membersIn(room?.timeline.events)];
        for (const hero of heroes) assert.ok(firstMembers.includes(hero));
        for (let index = 0; index < 7; index++) {
          await (await TestClient.register(server, `newcomer${index}`)).join(roomId);
        }
        const full = await ben.sync((await ben.sync()).next_batch, { ...lazy(), full_state: true });
        const members = membersIn(full.rooms?.join?.[roomId]?.state?.events);
        assert.ok(members.length < 8, members.join(' '));
      });
    });

    it('returns the unread counts of threads under the name that the filter requests, stable or of MSC3773', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      const root = await anna.say(roomId, 'root');
      await anna.do('PUT', `/rooms/${enc(roomId)}/send/m.room.message/reply`, {
        msgtype: 'm.text',
        body: 'reply',
        'm.relates_to': { rel_type: 'm.thread', event_id: root },
      });
      const names = ['unread_thread_notifications', 'org.matrix.msc3773.unread_thread_notifications'];
      for (const name of names) {
        const { rooms } = await ben.sync(undefined, { filter: { room: { timeline: { [name]: true } } } });
        const room = { ...rooms?.join?.[roomId] } as Record<string, unknown>;
        assert.deepEqual(room[name], { [root]: { notification_count: 1, highlight_count: 0 } });
        assert.deepEqual(
          Object.keys(room).filter((field) => names.includes(field)),
          [name],
        );
      }
    });

    it('applies filters for rooms, types, fields and formats', async () => {
      const { anna, ben, roomId } = await usersInRoom(2);
      const otherRoom = await anna.createRoom();
      await ben.join(otherRoom);
      await anna.say(roomId, 'hello');
      const withRooms = await ben.sync(undefined, { filter: { room: { rooms: [otherRoom] } } });
      assert.deepEqual(Object.keys(withRooms.rooms?.join ?? {}), [otherRoom]);
      const withoutRooms = await ben.sync(undefined, { filter: { room: { not_rooms: [otherRoom] } } });
      assert.deepEqual(Object.keys(withoutRooms.rooms?.join ?? {}), [roomId]);
      // Filtered by `event_fields`, the event does not match the specification's schema, which the test client checks.
      const lastOf = async (filter: object) => {
        const query = new URLSearchParams({ filter: JSON.stringify(filter), access_token: ben.token });
        const answer = await fetch(`${server.baseUrl}/_matrix/client/v3/sync?${query}`);
        return ((await answer.json()) as SyncJson).rooms?.join?.[roomId]?.timeline.events.at(-1);
      };
      const selected = await lastOf({ event_fields: ['type', 'content.body'] });
      assert.deepEqual(selected, { type: 'm.room.message', content: { body: 'hello' } });
      const pdu = (await lastOf({ event_format: 'federation' })) as unknown as Record<string, unknown>;
      assert.ok(pdu['auth_events'] && pdu['prev_events'] && pdu['signatures']);
      const types = await ben.sync(undefined, {
        filter: { room: { state: { types: ['m.room.create'] }, timeline: { limit: 1 } } },
      });
      assert.deepEqual(
        types.rooms?.join?.[roomId]?.state?.events.map(({ type }) => type),
        ['m.room.create'],
      );
    });
  });
}
