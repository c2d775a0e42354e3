import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu } from '../../src/protocol/index.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import type { ScriptedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

let transactions = 0;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the lifecycle of invites and knocks', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let d: ScriptedServer;
    let third: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    /** Whether `d.test` answers requests of handshakes. */
    let isReachable: boolean;
    /** Whether `d.test` still knows the invite, and answers make_leave with a template. */
    let hasInvite: boolean;
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test', {
        clock: unhurriedClock,
        config: { federationClient: { federation: { max_short_retries: 0 } } },
      });
      d = await several.scripted('d.test');
      third = await several.scripted('third.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    beforeEach(() => {
      room = new SignedRoom('11', { serverName: 'd.test', key: d.key });
      d.receivedRequests.splice(0);
      isReachable = true;
      hasInvite = true;
      const ifReachable = (answer: () => ScriptedAnswer) => () =>
        isReachable ? answer() : ([500, {}] as const);
      for (const membership of ['join', 'leave', 'knock'])
        d.on(
          `GET ${v1}/make_${membership}/`,
          ifReachable(() =>
            membership === 'leave' && !hasInvite
              ? [403, { errcode: 'M_FORBIDDEN', error: 'No such invite' }]
              : room.membershipTemplate(anna.id, membership),
          ),
        );
      d.on(
        `PUT ${v2}/send_join/`,
        ifReachable(() => ({ ...room.stateAndAuthChain() })),
      );
      d.on(
        `PUT ${v2}/send_leave/`,
        ifReachable(() => ({})),
      );
      d.on(
        `PUT ${v1}/send_knock/`,
        ifReachable(() => ({ knock_room_state: [] })),
      );
      d.on(`PUT ${v1}/send/`, () => ({ pdus: {} }));
    });

    const memberEvent = (membership: string, sender = room.creator, sendersRoom = room) =>
      sendersRoom.build({ type: 'm.room.member', sender, stateKey: anna.id, content: { membership } }).event;
    async function invite(event = memberEvent('invite')) {
      const path = `${v2}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = { room_version: '11', event: event.pdu, invite_room_state: [] };
      const answer = await d.request('a.test', 'PUT', path, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return event;
    }
    async function deliver(pdu: JsonObject, server = d) {
      const content = { origin: server.name, origin_server_ts: Date.now(), pdus: [pdu] };
      const path = `${v1}/send/over-time-${kind}-${transactions++}`;
      const { status, body } = await server.request('a.test', 'PUT', path, content);
      assert.equal(status, 200, JSON.stringify(body));
      return body['pdus'] as Record<string, { error?: string }>;
    }
    /** Returns a room of `third.test` that has the id of `room`. */
    function roomOfThirdServer(): SignedRoom {
      const otherRoom = new SignedRoom('11', { serverName: 'third.test', key: third.key });
      otherRoom.roomId = room.roomId;
      return otherRoom;
    }
    const requestCount = (endpoint: string) =>
      d.receivedRequests.filter(({ path }) => path.includes(`/${endpoint}/`)).length;
    const membershipInSync = async () => {
      const { rooms } = await anna.sync();
      if (rooms?.invite?.[room.roomId]) return 'invite';
      return rooms?.knock?.[room.roomId] ? 'knock' : undefined;
    };
    const leave = () => anna.call('POST', `/rooms/${enc(room.roomId)}/leave`, {});
    const join = (via?: string) =>
      anna.call('POST', `/join/${enc(room.roomId)}`, {}, via === undefined ? {} : { via });
    const isJoined = async () =>
      ((await anna.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(room.roomId);

    it('lets a user reject an invite while the inviting server is unreachable, and receive a new invite afterwards', async () => {
      await invite();
      isReachable = false;
      assert.equal((await leave()).status, 200);
      assert.equal(await membershipInSync(), undefined);
      isReachable = true;
      const requestsBefore = requestCount('make_leave');
      assert.equal((await leave()).status, 200);
      assert.equal(requestCount('make_leave'), requestsBefore, 'no invite is left to reject');
      await invite();
      assert.equal(await membershipInSync(), 'invite');
      assert.equal((await leave()).status, 200);
      assert.equal(requestCount('send_leave'), 1);
      assert.equal(await membershipInSync(), undefined);
    });

    it('joins the room of an invite that was rejected before', async () => {
      await invite();
      assert.equal((await leave()).status, 200);
      await a.restart();
      // No server is named in the request: the inviting server is remembered.
      const { status, raw } = await join();
      assert.equal(status, 200, raw);
      assert.equal(await isJoined(), true);
    });

    it('does not restore a retracted invite when the invite request is repeated', async () => {
      const event = await invite();
      const removal = memberEvent('leave');
      assert.deepEqual(await deliver(removal.pdu), { [removal.eventId]: {} });
      await invite(event);
      assert.equal(await membershipInSync(), undefined);
      await invite();
      assert.equal(await membershipInSync(), 'invite');
      // The retraction of the first invite does not affect the second one.
      await deliver(removal.pdu);
      assert.equal(await membershipInSync(), 'invite');
      const ban = memberEvent('ban');
      assert.deepEqual(await deliver(ban.pdu), { [ban.eventId]: {} });
      assert.equal(await membershipInSync(), undefined);
      await invite();
      assert.equal(await membershipInSync(), 'invite');
    });

    it("ends a knock by a leave event of the room's server or of the user, and by an invite", async () => {
      const knock = () => anna.call('POST', `/knock/${enc(room.roomId)}`, {}, { via: 'd.test' });
      assert.equal((await knock()).status, 200);
      assert.equal(await membershipInSync(), 'knock');
      // A leave event of the third server is ignored, because this server does not know that it is in the room.
      const roomOfStranger = roomOfThirdServer();
      await deliver(memberEvent('leave', roomOfStranger.creator, roomOfStranger).pdu, third);
      assert.equal(await membershipInSync(), 'knock');
      const denial = memberEvent('leave');
      assert.deepEqual(await deliver(denial.pdu), { [denial.eventId]: {} });
      assert.equal(await membershipInSync(), undefined);
      assert.equal((await knock()).status, 200);
      await a.restart();
      assert.equal((await leave()).status, 200);
      assert.equal(requestCount('send_leave'), 1);
      assert.equal(await membershipInSync(), undefined);
      assert.equal((await knock()).status, 200);
      await invite();
      assert.equal(await membershipInSync(), 'invite');
    });

    describe('an invite to a room that all members have left, as far as this server knows', () => {
      beforeEach(async () => {
        assert.equal((await join('d.test')).status, 200);
        const ids = [...room.state.values()].map(({ event }) => event.eventId);
        d.on(`GET ${v1}/state_ids/`, () => ({ pdu_ids: ids, auth_chain_ids: ids }));
        const departure = room.setState('m.room.member', { membership: 'leave' }, room.creator).event;
        assert.deepEqual(await deliver(departure.pdu), { [departure.eventId]: {} });
        await until(async () => {
          const { joined } = await anna.do('GET', `/rooms/${enc(room.roomId)}/joined_members`);
          return Object.keys(joined as object).length === 1;
        });
        assert.equal((await leave()).status, 200);
        d.receivedRequests.splice(0);
        // The creator has joined again, which `a.test` does not know.
        room.setState('m.room.member', { membership: 'join' }, room.creator);
        room.setState('m.room.topic', { topic: 'News' });
        await invite();
        assert.equal(await membershipInSync(), 'invite');
      });

      it('joins through the inviting server', async () => {
        const { status, raw } = await join();
        assert.equal(status, 200, raw);
        assert.equal(requestCount('send_join'), 1);
        const topic = await anna.do('GET', `/rooms/${enc(room.roomId)}/state/m.room.topic/`);
        assert.equal(topic['topic'], 'News');
        assert.equal(await isJoined(), true);
      });

      it('rejects the invite at the inviting server', async () => {
        assert.equal((await leave()).status, 200);
        assert.equal(requestCount('send_leave'), 1);
        const [sent] = d.receivedRequests.filter(({ path }) => path.includes('/send_leave/'));
        assert.equal(receivePdu(sent!.body, room.version).event.content['membership'], 'leave');
        assert.equal(await membershipInSync(), undefined);
        await a.restart();
        assert.equal(await membershipInSync(), undefined);
      });

      it('rejects the invite locally when the inviting server is unreachable', async () => {
        isReachable = false;
        assert.equal((await leave()).status, 200);
        assert.equal(await membershipInSync(), undefined);
      });
    });

    for (const membership of ['leave', 'ban']) {
      it(`ends an invite after a ${membership} by another user of the inviter's server only once that server confirms the end`, async () => {
        await invite();
        const otherUserId = '@other:d.test';
        await deliver(memberEvent(membership, otherUserId).pdu);
        await until(() => requestCount('make_leave') === 1);
        assert.equal(await membershipInSync(), 'invite');
        await invite();
        hasInvite = false;
        await deliver(memberEvent(membership, otherUserId).pdu);
        await until(async () => (await membershipInSync()) === undefined);
        assert.equal((await join('d.test')).status, 200);
      });
    }

    it('ends an invite after a leave sent by a user of a third server, once the inviting server confirms the end', async () => {
      await invite();
      const thirdRoom = roomOfThirdServer();
      await deliver(memberEvent('leave', thirdRoom.creator, thirdRoom).pdu, third);
      await until(() => requestCount('make_leave') === 1);
      assert.equal(await membershipInSync(), 'invite');
      // The inviting server receives the leave after this server.
      hasInvite = false;
      await until(async () => (await membershipInSync()) === undefined);
      assert.ok(requestCount('make_leave') >= 2);
    });

    it('ends an invite when the inviting server confirms the end of the invite only after a restart of this server', async () => {
      await invite();
      const thirdRoom = roomOfThirdServer();
      await deliver(memberEvent('leave', thirdRoom.creator, thirdRoom).pdu, third);
      await until(() => requestCount('make_leave') === 1);
      await a.restart();
      assert.equal(await membershipInSync(), 'invite');
      hasInvite = false;
      await until(async () => (await membershipInSync()) === undefined);
      assert.ok(requestCount('make_leave') >= 2);
    });

    it('ends an invite after a leave sent by a user of a third server who was in the room together with this server, once the inviting server confirms the end', async () => {
      const thirdRoom = roomOfThirdServer();
      thirdRoom.state.clear();
      for (const [key, event] of room.state) thirdRoom.state.set(key, event);
      const joined = thirdRoom.setState(
        'm.room.member',
        { membership: 'join' },
        thirdRoom.creator,
        thirdRoom.creator,
      );
      room.state.set('third', joined);
      assert.equal((await join('d.test')).status, 200);
      assert.equal((await leave()).status, 200);
      await invite();
      assert.equal(await membershipInSync(), 'invite');
      hasInvite = false;
      await deliver(memberEvent('leave', thirdRoom.creator, thirdRoom).pdu, third);
      await until(async () => (await membershipInSync()) === undefined);
    });
  });
});
