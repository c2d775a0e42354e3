import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a join without members (omit_members)', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let resident: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test');
      resident = await several.scripted('far.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());

    const names = ['one', 'two', 'three'].map((name) => `@${name}:far.test`);

    const newRoom = () => new SignedRoom('11', { serverName: 'far.test', key: resident.key });

    /** Makes `anna` join a room, of whose members the response of send_join returns only the creator. */
    async function join(joined = newRoom()) {
      room = joined;
      room.setState('m.room.name', { name: 'Crowd' });
      for (const userId of names) room.setState('m.room.member', { membership: 'join' }, userId, userId);
      const stateReleased = Promise.withResolvers<void>();
      const stateEvents = [...room.state.values()].map(({ event }) => event);
      const stateIdRequests: string[] = [];
      resident.on(`GET ${v1}/make_join/`, () => room.membershipTemplate(anna.id, 'join'));
      resident.on('PUT /_matrix/federation/v2/send_join/', ({ query }) => {
        assert.equal(query.get('omit_members'), 'true');
        const state = stateEvents.filter(({ type }) => type !== 'm.room.member').map(({ pdu }) => pdu);
        const chain = stateEvents.filter(({ stateKey }) => stateKey === room.creator).map(({ pdu }) => pdu);
        return { state, auth_chain: chain, members_omitted: true, servers_in_room: ['far.test', 'a.test'] };
      });
      resident.on(`GET ${v1}/state_ids/`, async ({ query }) => {
        stateIdRequests.push(query.get('event_id')!);
        await stateReleased.promise;
        const ids = stateEvents.map(({ eventId }) => eventId);
        return { pdu_ids: ids, auth_chain_ids: ids };
      });
      resident.on(`GET ${v1}/event/`, ({ path }) => {
        const event = stateEvents.find(({ eventId }) => path.endsWith(eventId));
        return event ? { origin: 'far.test', origin_server_ts: 1, pdus: [event.pdu] } : [404, {}];
      });
      resident.on(`PUT ${v1}/send/`, ({ body }) => ({
        pdus: Object.fromEntries((body['pdus'] as JsonObject[]).map((_, index) => [String(index), {}])),
      }));
      const { status, raw } = await anna.call('POST', `/join/${enc(room.roomId)}`, {}, { via: 'far.test' });
      assert.equal(status, 200, raw);
      return { sendMembers: stateReleased.resolve, stateIdRequests };
    }
    const members = async (user = anna) => {
      const { joined } = await user.do('GET', `/rooms/${enc(room.roomId)}/joined_members`);
      return Object.keys(joined as object).sort();
    };
    const allMembers = () => [anna.id, room.creator, ...names].sort();

    it('shows the room at once, and its members when they are known', async () => {
      const { sendMembers, stateIdRequests } = await join();
      const name = await anna.do('GET', `/rooms/${enc(room.roomId)}/state/m.room.name`);
      assert.equal(name['name'], 'Crowd');
      const since = (await anna.sync()).next_batch;
      await anna.say(room.roomId, 'hello');
      let isKnown = false;
      const membersOnceKnown = members().then((found) => {
        isKnown = true;
        return found;
      });
      // A message is sent to the servers in the room, although none of their members is known.
      await until(() =>
        resident.receivedRequests.some(
          ({ path, raw }) => raw.method === 'PUT' && path.startsWith(`${v1}/send/`),
        ),
      );
      assert.equal(isKnown, false);
      sendMembers();
      assert.deepEqual(await membersOnceKnown, allMembers());
      assert.equal(stateIdRequests.length, 1);
      const { rooms } = await anna.sync(since);
      const joinedRoom = rooms?.join?.[room.roomId];
      const keys = [...(joinedRoom?.state?.events ?? []), ...(joinedRoom?.timeline.events ?? [])].map(
        (one) => one.state_key,
      );
      for (const userId of names) assert.ok(keys.includes(userId), userId);
    });

    it('lets an invited local user reject the invite once the members are known', async () => {
      const alan = await a.registerClient('alan');
      for (const isInState of [true, false]) {
        const joined = newRoom();
        const sender = joined.creator;
        const content = { membership: 'invite' };
        const draft = { type: 'm.room.member', sender, stateKey: alan.id, content };
        const { event } = isInState ? joined.setState(draft.type, content, alan.id) : joined.build(draft);
        const path = `/_matrix/federation/v2/invite/${enc(joined.roomId)}/${enc(event.eventId)}`;
        const body = { room_version: '11', event: event.pdu, invite_room_state: [] };
        assert.equal((await resident.request('a.test', 'PUT', path, body)).status, 200);
        const { sendMembers } = await join(joined);
        const isShown = async () => (await alan.sync()).rooms?.invite?.[joined.roomId] !== undefined;
        assert.equal(await isShown(), true);
        const leaving = alan.call('POST', `/rooms/${enc(joined.roomId)}/leave`, {});
        sendMembers();
        assert.equal((await leaving).status, 200);
        assert.equal(await isShown(), false);
        assert.equal((await alan.call('POST', `/rooms/${enc(joined.roomId)}/leave`, {})).status, 200);
        const { status, body: member } = await anna.call(
          'GET',
          `/rooms/${enc(joined.roomId)}/state/m.room.member/${enc(alan.id)}`,
        );
        assert.deepEqual([status, member['membership']], isInState ? [200, 'leave'] : [404, undefined]);
      }
    });

    it('continues to fetch the members after a restart', async () => {
      const { sendMembers } = await join();
      await a.restart();
      sendMembers();
      const { user_id: userId } = (await anna.call('GET', '/account/whoami')).body;
      assert.equal(userId, anna.id);
      assert.deepEqual(await members(), allMembers());
    });

    it('refuses make_join of other servers until the members are known', async () => {
      const { sendMembers } = await join();
      const near = await several.scripted(`near${kind}.test`);
      const visitor = `@visitor:near${kind}.test`;
      const path = `${v1}/make_join/${enc(room.roomId)}/${enc(visitor)}?ver=11`;
      const answer = await near.request('a.test', 'GET', path);
      assert.deepEqual([answer.status, answer.body['errcode']], [404, 'M_NOT_FOUND']);
      sendMembers();
      await members();
      assert.equal((await near.request('a.test', 'GET', path)).status, 200);
    });

    it('until the members are known, lets no other local user join without a request to the resident server', async () => {
      const { sendMembers } = await join();
      const albert = await a.registerClient(`albert${kind}`);
      resident.on(`GET ${v1}/make_join/`, () => [403, { errcode: 'M_FORBIDDEN', error: 'banned' }]);
      const { status } = await albert.call('POST', `/join/${enc(room.roomId)}`, {});
      assert.equal(status, 403);
      sendMembers();
      assert.deepEqual(await members(), allMembers());
    });
  });
});
