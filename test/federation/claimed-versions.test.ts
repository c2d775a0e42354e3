import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu } from '../../src/protocol/index.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
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

/** The version that rooms of `b.test` have here. */
const right = '10';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('a server that says of the rooms of others that they are of another version', () => {
    let several: SeveralServers;
    let [a, b]: FederatedServer[] = [];
    let evil: ScriptedServer;
    let anna: TestClient;
    let alan: TestClient;
    let ben: TestClient;
    let roomId: string;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test', 'b.test'], withoutRetries);
      several = opened.several;
      [a, b] = opened.servers;
      evil = await several.scripted('evil.test');
      anna = await a!.registerClient('anna');
      alan = await a!.registerClient('alan');
      ben = await b!.registerClient('ben');
    });
    after(() => several.stop());
    beforeEach(async () => {
      evil.asked.splice(0);
      for (const path of ['make_join', 'make_leave', 'make_knock']) {
        evil.on(`GET ${v1}/${path}/`, () => [403, { errcode: 'M_FORBIDDEN', error: 'no' }]);
      }
      roomId = await roomOf('public');
    });

    const roomOf = (rule: string) =>
      ben.createRoom({
        preset: 'private_chat',
        room_version: right,
        name: 'True',
        initial_state: [{ type: 'm.room.join_rules', content: { join_rule: rule } }],
      });
    const invited = (guest: TestClient) =>
      ben.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: guest.id });

    /** The evil server's idea of the room. */
    function claimed(version: string): SignedRoom {
      const room = new SignedRoom(version, { serverName: 'evil.test', key: evil.key });
      room.roomId = roomId;
      return room;
    }
    /** A room of the evil server's own under the id of the other one, with nothing in it that does not fit. */
    function fakeRoom(version: string): SignedRoom {
      const room = claimed(version);
      const made = [...room.state.values()].map(({ event }) => event);
      room.state.clear();
      for (const { type, content, stateKey } of made) room.setState(type, content, stateKey);
      return room;
    }
    const memberEvent = (room: SignedRoom, guest: TestClient, membership: string) =>
      room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: guest.id,
        content: { membership },
      }).event;
    function claim(version: string, guest: TestClient, room = claimed(version)) {
      const name = { type: 'm.room.name', state_key: '', sender: room.creator, content: { name: 'Trap' } };
      const { eventId, pdu } = memberEvent(room, guest, 'invite');
      const body = { room_version: version, event: pdu, invite_room_state: [name] };
      return evil.ask('a.test', 'PUT', `${v2}/invite/${enc(roomId)}/${enc(eventId)}`, body);
    }
    const claims = async (version: string, guest: TestClient) =>
      assert.equal((await claim(version, guest)).status, 200);
    const nameShown = async (guest: TestClient) => {
      const events = (await guest.sync()).rooms?.invite?.[roomId]?.invite_state.events;
      return events?.find(({ type }) => type === 'm.room.name')?.content['name'];
    };
    const membershipAtHome = async (guest: TestClient) =>
      (await ben.call('GET', `/rooms/${enc(roomId)}/state/m.room.member/${enc(guest.id)}`)).body[
        'membership'
      ];
    const joinBy = (guest: TestClient, via?: string) =>
      guest.call('POST', `/join/${enc(roomId)}`, {}, via === undefined ? {} : { via });
    const isJoined = async (guest: TestClient) =>
      ((await guest.do('GET', '/joined_rooms'))['joined_rooms'] as string[]).includes(roomId);

    async function joins(guest: TestClient, via?: string) {
      const { status, raw } = await joinBy(guest, via);
      assert.equal(status, 200, raw);
      assert.equal(await isJoined(guest), true);
      await until(async () => (await membershipAtHome(guest)) === 'join');
      const create = await guest.do('GET', `/rooms/${enc(roomId)}/state/m.room.create/`);
      assert.equal(create['room_version'], right);
      await guest.do('PUT', `/rooms/${enc(roomId)}/send/m.room.message/${guest.id}`, { body: 'hello' });
      await ben.do('PUT', `/rooms/${enc(roomId)}/state/m.room.topic/`, { topic: `for ${guest.id}` });
      await until(async () => {
        const { status: known, body } = await guest.call('GET', `/rooms/${enc(roomId)}/state/m.room.topic/`);
        return known === 200 && body['topic'] === `for ${guest.id}`;
      });
    }

    for (const wrong of ['1', '3', '8', '11']) {
      it(`does not keep anybody out, with version ${wrong}`, async () => {
        await claims(wrong, alan);
        await claims(wrong, anna);
        assert.equal(await nameShown(anna), 'Trap');
        assert.equal((await invited(anna)).status, 200);
        assert.equal(await nameShown(anna), 'True');
        assert.equal(await nameShown(alan), 'Trap');
        await joins(anna);
        // The room itself knows nothing of an invite of him.
        assert.equal(await nameShown(alan), undefined);
        await joins(alan);
      });
    }

    it('does not keep those out who name the right server', async () => {
      await claims('1', anna);
      await joins(anna, 'b.test');
    });

    it('does not keep those out who were invited by the right one before', async () => {
      assert.equal((await invited(anna)).status, 200);
      await claims('6', anna);
      assert.equal(await nameShown(anna), 'Trap');
      await a!.restart();
      await joins(anna);
      assert.ok(evil.asked.some(({ path }) => path.includes('/make_join/')));
    });

    it('is not believed once the room is known, also when everybody has left it', async () => {
      await joins(anna, 'b.test');
      const inside = await claim('6', alan);
      assert.deepEqual([inside.status, inside.body['errcode']], [400, 'M_INVALID_PARAM']);
      await anna.leave(roomId);
      const outside = await claim('6', alan);
      assert.deepEqual([outside.status, outside.body['errcode']], [400, 'M_INVALID_PARAM']);
      await claims(right, alan);
      await a!.restart();
      assert.equal((await claim('6', alan)).status, 400);
      assert.equal(await nameShown(alan), 'Trap');
      await joins(alan, 'b.test');
    });

    it('does not have the invites of others turned down elsewhere than where they are from', async () => {
      await claims('1', alan);
      assert.equal((await invited(anna)).status, 200);
      await anna.leave(roomId);
      assert.equal(await nameShown(anna), undefined);
      assert.equal(await membershipAtHome(anna), 'leave');
      // His goes as well, though nobody helps with it; and both can be invited again.
      await alan.leave(roomId);
      assert.equal(await nameShown(alan), undefined);
      await a!.restart();
      assert.equal(await nameShown(alan), undefined);
      for (const guest of [anna, alan]) {
        assert.equal((await invited(guest)).status, 200);
        assert.equal(await nameShown(guest), 'True');
      }
      await joins(alan);
      await anna.leave(roomId);
      await until(async () => (await membershipAtHome(anna)) === 'leave');
    });

    it('is told that its invite is turned down, by the version that it says then', async () => {
      await claims('1', alan);
      const room = claimed('11');
      evil.on(`GET ${v1}/make_leave/`, () => room.membershipTemplate(alan.id, 'leave'));
      evil.on(`PUT ${v2}/send_leave/`, () => ({}));
      await alan.leave(roomId);
      const [sent] = evil.asked.filter(({ path }) => path.includes('/send_leave/'));
      assert.ok(sent);
      assert.equal(receivePdu(sent.body, room.version).hashMatches, true);
      assert.equal(await nameShown(alan), undefined);
      await claims('6', alan);
      assert.equal(await nameShown(alan), 'Trap');
      await alan.leave(roomId);
      await joins(alan, 'b.test');
    });

    it('can take its invites back by the version that it has named, and nobody else’s', async () => {
      const deliver = async (pdu: JsonObject, txn: string) => {
        const content = { origin: 'evil.test', origin_server_ts: Date.now(), pdus: [pdu] };
        const answer = await evil.ask('a.test', 'PUT', `${v1}/send/${kind}${txn}`, content);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        return answer.body['pdus'] as Record<string, { error?: string }>;
      };
      await claims('6', alan);
      assert.equal((await invited(anna)).status, 200);
      const room = claimed('6');
      const ofAnna = memberEvent(room, anna, 'leave');
      const refused = await deliver(ofAnna.pdu, `${roomId}1`);
      assert.ok(Object.values(refused).every(({ error }) => error !== undefined));
      assert.equal(await nameShown(anna), 'True');
      const ofAlan = memberEvent(room, alan, 'leave');
      assert.deepEqual(await deliver(ofAlan.pdu, `${roomId}2`), { [ofAlan.eventId]: {} });
      assert.equal(await nameShown(alan), undefined);
      // What else is said of such a room is of no use, and breaks nothing.
      const message = room.say('hello').event;
      const nonsense: JsonObject[] = [
        message.pdu,
        { ...ofAnna.pdu, state_key: 5 },
        { ...ofAnna.pdu, state_key: '@\0:a.test' },
        { ...ofAnna.pdu, content: { membership: ['leave'] } },
        { ...ofAnna.pdu, prev_events: {}, event_id: 7 },
        { room_id: roomId, type: 'm.room.member', state_key: anna.id },
        { room_id: roomId, type: 'm.room.member', state_key: anna.id, event_id: '$\0:evil.test' },
      ];
      for (const [index, pdu] of nonsense.entries()) await deliver(pdu, `${roomId}n${index}`);
      assert.equal(await nameShown(anna), 'True');
      await joins(anna);
    });

    it('does not hide that the right server takes its invite back', async () => {
      await claims('1', alan);
      assert.equal((await invited(anna)).status, 200);
      await ben.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: anna.id });
      await until(async () => (await nameShown(anna)) === undefined);
      assert.equal((await invited(anna)).status, 200);
      await ben.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: anna.id });
      await until(async () => (await nameShown(anna)) === undefined);
      const { status, body } = await joinBy(anna, 'b.test');
      assert.deepEqual([status, body['errcode']], [403, 'M_FORBIDDEN']);
      await joins(alan, 'b.test');
    });

    it('can not let anybody into a room of its own under the id of another', async () => {
      await claims('11', anna);
      const fake = fakeRoom('11');
      evil.on(`GET ${v1}/make_join/`, () => fake.membershipTemplate(anna.id, 'join'));
      evil.on(`PUT ${v2}/send_join/`, () => ({ ...fake.stateAndAuthChain(), members_omitted: false }));
      const { status } = await joinBy(anna);
      assert.notEqual(status, 200);
      assert.ok(evil.asked.some(({ path }) => path.includes('/send_join/')));
      assert.equal(await isJoined(anna), false);
      await joins(anna, 'b.test');
    });

    it('has what it has sent forgotten, when somebody gets in by the right version', async () => {
      const d = await several.scripted('d.test');
      const room = new SignedRoom('9', { serverName: 'd.test', key: d.key });
      roomId = room.roomId;
      const guest = '@guest:d.test';
      room.setState('m.room.member', { membership: 'join' }, guest, guest);
      room.setState('m.room.topic', { topic: 'x' }, '', guest);
      const { state: real } = room.stateAndAuthChain();
      // Its own room has the id of the other one, and it knows events of that.
      const fake = fakeRoom('10');
      const { state } = fake.stateAndAuthChain();
      evil.on(`GET ${v1}/make_join/`, () => fake.membershipTemplate(anna.id, 'join'));
      evil.on(`PUT ${v2}/send_join/`, () => ({ state, auth_chain: [...state, ...real] }));
      assert.notEqual((await joinBy(anna, 'evil.test')).status, 200);
      assert.ok(evil.asked.some(({ path }) => path.includes('/send_join/')));
      // One event can not be had here: those that name it are left out, though the other server has sent it before.
      const most = real.filter(({ state_key: key }) => key !== guest);
      d.on(`GET ${v1}/make_join/`, () => room.membershipTemplate(anna.id, 'join'));
      d.on(`PUT ${v2}/send_join/`, () => ({ state: most, auth_chain: most }));
      const { status, raw } = await joinBy(anna, 'd.test');
      assert.equal(status, 200, raw);
      assert.equal(await isJoined(anna), true);
      const create = await anna.do('GET', `/rooms/${enc(roomId)}/state/m.room.create/`);
      assert.equal(create['room_version'], '9');
    });

    it('does not keep those away who knock', async () => {
      roomId = await roomOf('knock');
      await claims('1', alan);
      const knocked = await anna.call('POST', `/knock/${enc(roomId)}`, {}, { via: 'b.test' });
      assert.equal(knocked.status, 200, knocked.raw);
      assert.ok((await anna.sync()).rooms?.knock?.[roomId]);
      assert.equal(await membershipAtHome(anna), 'knock');
      assert.equal((await invited(anna)).status, 200);
      await joins(anna);
    });

    it('has its claims of a knock forgotten, too', async () => {
      const room = claimed('11');
      evil.on(`GET ${v1}/make_knock/`, () => room.membershipTemplate(anna.id, 'knock'));
      evil.on(`PUT ${v1}/send_knock/`, () => ({ knock_room_state: [] }));
      roomId = room.roomId = await roomOf('knock');
      const knocked = await anna.call('POST', `/knock/${enc(roomId)}`, {}, { via: 'evil.test' });
      assert.equal(knocked.status, 200, knocked.raw);
      assert.ok((await anna.sync()).rooms?.knock?.[roomId]);
      assert.equal((await invited(anna)).status, 200);
      assert.equal(await nameShown(anna), 'True');
      await joins(anna);
    });
  });
});
