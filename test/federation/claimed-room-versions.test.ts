import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu } from '../../src/protocol/index.ts';
import { unhurriedClock } from '../support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { until } from '../support/other-servers/federation-sender.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import {
  type FederatedServer,
  SeveralServers,
  withoutRetries,
} from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

/** The true version of the rooms of `b.test` in these tests. */
const trueVersion = '10';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe("a remote server that claims a false room version for another server's room", () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: FederatedServer;
    let evil: ScriptedServer;
    let anna: TestClient;
    let alan: TestClient;
    let ben: TestClient;
    let roomId: string;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], {
        ...withoutRetries,
        clock: unhurriedClock,
      });
      several = opened.several;
      [a, b] = opened.servers;
      evil = await several.scripted('evil.test');
      anna = await a.registerClient('anna');
      alan = await a.registerClient('alan');
      ben = await b.registerClient('ben');
    });
    after(() => several.stop());
    beforeEach(async () => {
      evil.receivedRequests.splice(0);
      for (const path of ['make_join', 'make_leave', 'make_knock']) {
        evil.on(`GET ${v1}/${path}/`, () => [403, { errcode: 'M_FORBIDDEN', error: 'no' }]);
      }
      roomId = await createRoomAtB('public');
    });

    const createRoomAtB = (rule: string) =>
      ben.createRoom({
        preset: 'private_chat',
        room_version: trueVersion,
        name: 'True',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: rule } }],
      });
    const inviteFromB = (user: TestClient) =>
      ben.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: user.id });

    /** Makes a room of the hostile server in this version and gives it the id of the true room. */
    function falseRoom(version: string): SignedRoom {
      const room = new SignedRoom(version, { serverName: 'evil.test', key: evil.key });
      room.roomId = roomId;
      return room;
    }
    /** Like `falseRoom`, but its events are built again, so that they carry the id of the true room. */
    function completeFalseRoom(version: string): SignedRoom {
      const room = falseRoom(version);
      const events = [...room.state.values()].map(({ event }) => event);
      room.state.clear();
      for (const { type, content, stateKey } of events) room.setState(type, content, stateKey);
      return room;
    }
    const memberEvent = (room: SignedRoom, user: TestClient, membership: string) =>
      room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: user.id,
        content: { membership },
      }).event;
    function sendFalseInvite(version: string, user: TestClient, room = falseRoom(version)) {
      const name = { type: 'm.room.name', state_key: '', sender: room.creator, content: { name: 'Trap' } };
      const { eventId, pdu } = memberEvent(room, user, 'invite');
      const body = { room_version: version, event: pdu, invite_room_state: [name] };
      return evil.request('a.test', 'PUT', `${v2}/invite/${enc(roomId)}/${enc(eventId)}`, body);
    }
    const assertAcceptsFalseInvite = async (version: string, user: TestClient) =>
      assert.equal((await sendFalseInvite(version, user)).status, 200);
    const inviteRoomName = async (user: TestClient) => {
      const events = (await user.sync()).rooms?.invite?.[roomId]?.invite_state.events;
      return events?.find(({ type }) => type === 'm.room.name')?.content['name'];
    };
    const membershipAtB = async (user: TestClient) =>
      (await ben.call('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(user.id)}`)).body['membership'];
    const joinAs = (user: TestClient, via?: string) =>
      user.call('POST', `/join/${enc(roomId)}`, {}, via === undefined ? {} : { via });
    const isJoined = async (user: TestClient) =>
      ((await user.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(roomId);

    async function assertJoinsAndReceives(user: TestClient, via?: string) {
      const { status, raw } = await joinAs(user, via);
      assert.equal(status, 200, raw);
      assert.equal(await isJoined(user), true);
      await until(async () => (await membershipAtB(user)) === 'join');
      const create = await user.do('GET', `/rooms/${enc(roomId)}/state/m.room.create/`);
      assert.equal(create['room_version'], trueVersion);
      await user.do('PUT', `/rooms/${enc(roomId)}/send/m.room.message/${user.id}`, { body: 'hello' });
      await ben.do('PUT', `/rooms/${enc(roomId)}/state/m.room.topic/`, { topic: `for ${user.id}` });
      await until(async () => {
        const { status: topicStatus, body } = await user.call(
          'GET',
          `/rooms/${enc(roomId)}/state/m.room.topic/`,
        );
        return topicStatus === 200 && body['topic'] === `for ${user.id}`;
      });
    }

    for (const falseVersion of ['1', '3', '8', '11']) {
      it(`lets users join the room although an invite claimed version ${falseVersion}`, async () => {
        await assertAcceptsFalseInvite(falseVersion, alan);
        await assertAcceptsFalseInvite(falseVersion, anna);
        assert.equal(await inviteRoomName(anna), 'Trap');
        assert.equal((await inviteFromB(anna)).status, 200);
        assert.equal(await inviteRoomName(anna), 'True');
        assert.equal(await inviteRoomName(alan), 'Trap');
        await assertJoinsAndReceives(anna);
        // Once the server is in the true room, Alan's false invite ends: b.test has not invited Alan.
        await until(async () => (await inviteRoomName(alan)) === undefined);
        await assertJoinsAndReceives(alan);
      });
    }

    it('lets an invited user join through the server of the room after a false invite', async () => {
      await assertAcceptsFalseInvite('1', anna);
      await assertJoinsAndReceives(anna, 'b.test');
    });

    it('lets a user join who was invited by the server of the room before the false invite', async () => {
      assert.equal((await inviteFromB(anna)).status, 200);
      await assertAcceptsFalseInvite('6', anna);
      assert.equal(await inviteRoomName(anna), 'Trap');
      await a.restart();
      await assertJoinsAndReceives(anna);
      assert.ok(evil.receivedRequests.some(({ path }) => path.includes('/make_join/')));
    });

    it('rejects an invite that claims another version of a known room, even after all local users have left the room', async () => {
      await assertJoinsAndReceives(anna, 'b.test');
      const inside = await sendFalseInvite('6', alan);
      assert.deepEqual([inside.status, inside.body['errcode']], [400, 'M_INVALID_PARAM']);
      await anna.leave(roomId);
      const outside = await sendFalseInvite('6', alan);
      assert.deepEqual([outside.status, outside.body['errcode']], [400, 'M_INVALID_PARAM']);
      await assertAcceptsFalseInvite(trueVersion, alan);
      await a.restart();
      assert.equal((await sendFalseInvite('6', alan)).status, 400);
      assert.equal(await inviteRoomName(alan), 'Trap');
      await assertJoinsAndReceives(alan, 'b.test');
    });

    it('sends the rejection of each invite to the server that sent the invite', async () => {
      await assertAcceptsFalseInvite('1', alan);
      assert.equal((await inviteFromB(anna)).status, 200);
      await anna.leave(roomId);
      assert.equal(await inviteRoomName(anna), undefined);
      assert.equal(await membershipAtB(anna), 'leave');
      // Alan's invite ends too, although the hostile server refuses make_leave, and both users can be invited again.
      await alan.leave(roomId);
      assert.equal(await inviteRoomName(alan), undefined);
      await a.restart();
      assert.equal(await inviteRoomName(alan), undefined);
      for (const user of [anna, alan]) {
        assert.equal((await inviteFromB(user)).status, 200);
        assert.equal(await inviteRoomName(user), 'True');
      }
      await assertJoinsAndReceives(alan);
      await anna.leave(roomId);
      await until(async () => (await membershipAtB(anna)) === 'leave');
    });

    it('a user rejects a false invite by a leave event in the room version that make_leave claims', async () => {
      await assertAcceptsFalseInvite('1', alan);
      const room = falseRoom('11');
      evil.on(`GET ${v1}/make_leave/`, () => room.membershipTemplate(alan.id, 'leave'));
      evil.on(`PUT ${v2}/send_leave/`, () => ({}));
      await alan.leave(roomId);
      const [sent] = evil.receivedRequests.filter(({ path }) => path.includes('/send_leave/'));
      assert.ok(sent);
      assert.equal(receivePdu(sent.body, room.version).hashMatches, true);
      assert.equal(await inviteRoomName(alan), undefined);
      await assertAcceptsFalseInvite('6', alan);
      assert.equal(await inviteRoomName(alan), 'Trap');
      await alan.leave(roomId);
      await assertJoinsAndReceives(alan, 'b.test');
    });

    it('accepts the retraction of an invite from the hostile server only if that server sent the invite, in the room version that the invite claimed', async () => {
      const deliver = async (pdu: JsonObject, txn: string) => {
        const content = { origin: 'evil.test', origin_server_ts: Date.now(), pdus: [pdu] };
        const answer = await evil.request('a.test', 'PUT', `${v1}/send/${kind}${txn}`, content);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        return answer.body['pdus'] as Record<string, { error?: string }>;
      };
      await assertAcceptsFalseInvite('6', alan);
      assert.equal((await inviteFromB(anna)).status, 200);
      const room = falseRoom('6');
      const leaveOfAnna = memberEvent(room, anna, 'leave');
      const outcomes = await deliver(leaveOfAnna.pdu, `${roomId}1`);
      assert.ok(Object.values(outcomes).every(({ error }) => error !== undefined));
      assert.equal(await inviteRoomName(anna), 'True');
      const leaveOfAlan = memberEvent(room, alan, 'leave');
      assert.deepEqual(await deliver(leaveOfAlan.pdu, `${roomId}2`), { [leaveOfAlan.eventId]: {} });
      assert.equal(await inviteRoomName(alan), undefined);
      // Other events of the falsely claimed room are ignored.
      const message = room.say('hello').event;
      const nonsense: JsonObject[] = [
        message.pdu,
        { ...leaveOfAnna.pdu, state_key: 5 },
        { ...leaveOfAnna.pdu, state_key: '@\0:a.test' },
        { ...leaveOfAnna.pdu, content: { membership: ['leave'] } },
        { ...leaveOfAnna.pdu, prev_events: {}, event_id: 7 },
        { room_id: roomId, type: 'm.room.member', state_key: anna.id },
        { room_id: roomId, type: 'm.room.member', state_key: anna.id, event_id: '$\0:evil.test' },
      ];
      for (const [index, pdu] of nonsense.entries()) await deliver(pdu, `${roomId}n${index}`);
      assert.equal(await inviteRoomName(anna), 'True');
      await assertJoinsAndReceives(anna);
    });

    it('accepts a retraction of an invite from the server of the room after a false invite', async () => {
      await assertAcceptsFalseInvite('1', alan);
      assert.equal((await inviteFromB(anna)).status, 200);
      await ben.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: anna.id });
      await until(async () => (await inviteRoomName(anna)) === undefined);
      assert.equal((await inviteFromB(anna)).status, 200);
      await ben.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: anna.id });
      await until(async () => (await inviteRoomName(anna)) === undefined);
      const { status, body } = await joinAs(anna, 'b.test');
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
      await assertJoinsAndReceives(alan, 'b.test');
    });

    it("refuses a join to a room that the hostile server made up under another room's id", async () => {
      await assertAcceptsFalseInvite('11', anna);
      const fake = completeFalseRoom('11');
      evil.on(`GET ${v1}/make_join/`, () => fake.membershipTemplate(anna.id, 'join'));
      evil.on(`PUT ${v2}/send_join/`, () => ({ ...fake.stateAndAuthChain(), members_omitted: false }));
      const { status } = await joinAs(anna);
      assert.notEqual(status, 200);
      assert.ok(evil.receivedRequests.some(({ path }) => path.includes('/send_join/')));
      assert.equal(await isJoined(anna), false);
      await assertJoinsAndReceives(anna, 'b.test');
    });

    it('forgets the events of a failed join in a false room version once a user joins in the true version', async () => {
      const d = await several.scripted('d.test');
      const room = new SignedRoom('9', { serverName: 'd.test', key: d.key });
      roomId = room.roomId;
      const user = '@user:d.test';
      room.setState('m.room.member', { membership: 'join' }, user, user);
      room.setState('m.room.topic', { topic: 'x' }, '', user);
      const { state: trueState } = room.stateAndAuthChain();
      // The hostile server's room has the id of the true room, and its auth chain contains events of the true
      // room.
      const fake = completeFalseRoom('10');
      const { state } = fake.stateAndAuthChain();
      evil.on(`GET ${v1}/make_join/`, () => fake.membershipTemplate(anna.id, 'join'));
      evil.on(`PUT ${v2}/send_join/`, () => ({ state, auth_chain: [...state, ...trueState] }));
      assert.notEqual((await joinAs(anna, 'evil.test')).status, 200);
      assert.ok(evil.receivedRequests.some(({ path }) => path.includes('/send_join/')));
      // This response lacks one event: events that refer to it are dropped, although evil.test has sent the
      // event before.
      const stateWithoutMember = trueState.filter(({ state_key: key }) => key !== user);
      d.on(`GET ${v1}/make_join/`, () => room.membershipTemplate(anna.id, 'join'));
      d.on(`PUT ${v2}/send_join/`, () => ({ state: stateWithoutMember, auth_chain: stateWithoutMember }));
      const { status, raw } = await joinAs(anna, 'd.test');
      assert.equal(status, 200, raw);
      assert.equal(await isJoined(anna), true);
      const create = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.create/`);
      assert.equal(create['room_version'], '9');
    });

    it('lets users knock although an invite claimed a false version', async () => {
      roomId = await createRoomAtB('knock');
      await assertAcceptsFalseInvite('1', alan);
      const knocked = await anna.call('POST', `/knock/${enc(roomId)}`, {}, { via: 'b.test' });
      assert.equal(knocked.status, 200, knocked.raw);
      assert.ok((await anna.sync()).rooms?.knock?.[roomId]);
      assert.equal(await membershipAtB(anna), 'knock');
      assert.equal((await inviteFromB(anna)).status, 200);
      await assertJoinsAndReceives(anna);
    });

    it('forgets the false room version that a knock claimed once the server of the room invites the user', async () => {
      const room = falseRoom('11');
      evil.on(`GET ${v1}/make_knock/`, () => room.membershipTemplate(anna.id, 'knock'));
      evil.on(`PUT ${v1}/send_knock/`, () => ({ knock_room_state: [] }));
      roomId = room.roomId = await createRoomAtB('knock');
      const knocked = await anna.call('POST', `/knock/${enc(roomId)}`, {}, { via: 'evil.test' });
      assert.equal(knocked.status, 200, knocked.raw);
      assert.ok((await anna.sync()).rooms?.knock?.[roomId]);
      assert.equal((await inviteFromB(anna)).status, 200);
      assert.equal(await inviteRoomName(anna), 'True');
      await assertJoinsAndReceives(anna);
    });
  });
});
