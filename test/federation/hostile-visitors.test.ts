import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandomness } from '../../src/kernel/randomness.ts';
import { getRoomVersion, type JsonObject, signEvent } from '../../src/protocol/index.ts';
import { eventAt, placeIn } from '../../src/room-federation/handshakes/templates/event-from-template.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { validateResponse } from '../support/matrix-spec/matrix-spec.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const userId = '@mallory:evil.test';
const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

type Asked = ReturnType<ScriptedServer['ask']>;

async function refused(answer: Asked, status: number, errcode: string, what = '') {
  const { status: actual, body } = await answer;
  assert.deepEqual([actual, body['errcode']], [status, errcode], what + JSON.stringify(body));
}

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('a server that lies to one whose room it wants to be in', () => {
    let several: SeveralServers;
    let evil: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    before(async () => {
      several = new SeveralServers(kind);
      const a = await several.homeserver('a.test');
      evil = await several.scripted('evil.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
    });

    /** Asks, and holds the answer against the specification. */
    async function ask(method: string, path: string, body?: JsonObject): Asked {
      const answer = await evil.ask('a.test', method, path, body);
      assert.deepEqual(validateResponse(method, path, answer.status, answer.body).problems, []);
      return answer;
    }
    const prepare = (membership = 'join', user = userId, query = '?ver=11&ver=10') =>
      ask('GET', `${v1}/make_${membership}/${enc(roomId)}/${enc(user)}${query}`);

    /** An event of a user of the evil server at the place that the template names. */
    async function build(change: Partial<Parameters<typeof eventAt>[1]> = {}, key = evil.key) {
      const { body } = await prepare();
      const version = getRoomVersion(String(body['room_version']))!;
      const own = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
      return eventAt(
        placeIn(body['event'] as JsonObject, version),
        { ...own, content: { membership: 'join' }, ...change },
        version,
        {
          signer: { serverName: 'evil.test', key },
          clock: systemClock,
          randomness: systemRandomness,
        },
      ).event;
    }
    const hand = (event: { eventId: string; pdu: JsonObject }, action = 'join', query = '') =>
      ask('PUT', `${v2}/send_${action}/${enc(roomId)}/${enc(event.eventId)}${query}`, event.pdu);
    const membersOf = async () =>
      Object.keys((await anna.do('GET', `/rooms/${enc(roomId)}/joined_members`))['joined'] as object);

    it('gets templates for its own users only, in versions that it knows', async () => {
      const { status, body } = await prepare();
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body['room_version'], '11');
      await refused(prepare('join', anna.id), 403, 'M_FORBIDDEN');
      await refused(prepare('leave', anna.id, ''), 403, 'M_FORBIDDEN');
      await refused(prepare('join', '@x:third.test'), 403, 'M_FORBIDDEN');
      await refused(prepare('join', 'mallory'), 403, 'M_FORBIDDEN');
      await refused(prepare('join', userId, '?ver=9'), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await refused(prepare('join', userId, ''), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await refused(prepare('leave', userId, ''), 403, 'M_FORBIDDEN');
      await refused(prepare('knock'), 403, 'M_FORBIDDEN');
      roomId = '!unknown:a.test';
      await refused(prepare(), 404, 'M_NOT_FOUND');
    });

    it('gets nothing when the room does not admit it', async () => {
      const event = await build();
      await anna.setState(roomId, 'm.room.server_acl', { allow: ['*'], deny: ['evil.test'] });
      await refused(prepare(), 403, 'M_FORBIDDEN');
      await refused(hand(event), 403, 'M_FORBIDDEN');
      assert.deepEqual(await membersOf(), [anna.id]);
    });

    it('is in the room when it does not lie, and is told of all of it', async () => {
      await anna.setState(roomId, 'm.room.topic', { topic: 'Truth' });
      const event = await build();
      const { status, body } = await hand(event);
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(body['members_omitted'], false);
      const types = (body['state'] as JsonObject[]).map(({ type }) => type);
      for (const type of ['m.room.create', 'm.room.member', 'm.room.topic']) assert.ok(types.includes(type));
      assert.ok((body['auth_chain'] as unknown[]).length >= 3);
      assert.deepEqual((await membersOf()).sort(), [anna.id, userId]);
      assert.equal((await hand(event)).status, 200);
    });

    it('is told of the room without its members when it wants that', async () => {
      await anna.setState(roomId, 'm.room.name', { name: 'Hall' });
      const { body } = await hand(await build(), 'join', '?omit_members=true');
      assert.equal(body['members_omitted'], true);
      assert.deepEqual(body['servers_in_room'], ['a.test']);
      const types = (body['state'] as JsonObject[]).map(({ type }) => type);
      assert.ok(!types.includes('m.room.member'));
      assert.ok(types.includes('m.room.name'));
      // What authorises the join is in the auth chain, and nothing that is in the state.
      const chain = (body['auth_chain'] as JsonObject[]).map(({ type }) => type);
      assert.deepEqual(chain, ['m.room.member']);
    });

    it('is told of those after whom a room without a name is called', async () => {
      const { body } = await hand(await build(), 'join', '?omit_members=true');
      const members = (body['state'] as JsonObject[]).filter(({ type }) => type === 'm.room.member');
      assert.deepEqual(
        members.map(({ state_key: key }) => key),
        [anna.id],
      );
    });

    it('does not get an event into the room that is no join of its user', async () => {
      const wrong: [what: string, change: Parameters<typeof build>[0]][] = [
        ['another type', { type: 'm.room.topic', stateKey: '' }],
        ['another sender', { sender: anna.id, stateKey: anna.id }],
        ['another user', { stateKey: '@other:evil.test' }],
        ['another membership', { content: { membership: 'invite' } }],
        ['a leave', { content: { membership: 'leave' } }],
        ['another room', { roomId: '!other:a.test' }],
      ];
      for (const [what, change] of wrong) {
        await refused(hand(await build(change)), 400, 'M_INVALID_PARAM', what);
      }
      assert.deepEqual(await membersOf(), [anna.id]);
    });

    it('does not get a forged event into the room', async () => {
      const event = await build();
      const path = `${v2}/send_join/${enc(roomId)}/`;
      await refused(ask('PUT', `${path}$other`, event.pdu), 400, 'M_INVALID_PARAM');
      await refused(hand(await build({}, newSigningKey('scripted'))), 400, 'M_INVALID_PARAM');
      const unsigned = { ...event, pdu: { ...event.pdu, signatures: {} } };
      await refused(hand(unsigned), 400, 'M_INVALID_PARAM');
      const changed = { ...event, pdu: { ...event.pdu, content: { membership: 'join', displayname: 'x' } } };
      await refused(hand(changed), 400, 'M_INVALID_PARAM');
      await refused(hand({ ...event, pdu: { type: 'm.room.member' } }), 400, 'M_BAD_JSON');
      await refused(hand({ ...event, pdu: { ...event.pdu, depth: -5 } }), 400, 'M_BAD_JSON');
      assert.deepEqual(await membersOf(), [anna.id]);
    });

    it('does not get an event into the room that comes after what nobody has seen', async () => {
      const { body } = await prepare();
      const template = body['event'] as JsonObject;
      const elsewhere = { ...template, prev_events: [`$${'A'.repeat(43)}`] };
      const event = eventAt(
        placeIn(elsewhere, getRoomVersion('11')!),
        {
          roomId,
          type: 'm.room.member',
          sender: userId,
          stateKey: userId,
          content: { membership: 'join' },
        },
        getRoomVersion('11')!,
        {
          signer: { serverName: 'evil.test', key: evil.key },
          clock: systemClock,
          randomness: systemRandomness,
        },
      ).event;
      await refused(hand(event), 400, 'M_INVALID_PARAM');
    });

    it('does not get its join signed where nobody has to vouch for it', async () => {
      const content = { membership: 'join', join_authorised_via_users_server: anna.id };
      await refused(hand(await build({ content })), 403, 'M_FORBIDDEN');
      const event = await build({ content });
      const space = await anna.createRoom();
      const join_rules = { join_rule: 'restricted', allow: [{ type: 'm.room_membership', room_id: space }] };
      await anna.setState(roomId, 'm.room.join_rules', join_rules);
      await refused(hand(event), 403, 'M_FORBIDDEN');
      await refused(prepare(), 403, 'M_FORBIDDEN');
      assert.deepEqual(await membersOf(), [anna.id]);
    });

    it('does not get in after it was banned, also not with a template of before', async () => {
      const event = await build();
      await anna.do('POST', `/rooms/${enc(roomId)}/ban`, { user_id: userId });
      await refused(hand(event), 403, 'M_FORBIDDEN');
      await refused(prepare(), 403, 'M_FORBIDDEN');
    });
  });

  describe('a server that lies about invites', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let evil: ScriptedServer;
    let anna: TestClient;
    let room: SignedRoom;
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test');
      evil = await several.scripted('evil.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());
    const newRoom = (version = '11') => new SignedRoom(version, { serverName: 'evil.test', key: evil.key });
    beforeEach(() => {
      room = newRoom();
    });

    const invitation = (change: Partial<Parameters<SignedRoom['build']>[0]> = {}) =>
      room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: anna.id,
        content: { membership: 'invite' },
        ...change,
      }).event;
    const described = () => [...room.state.values()].map(({ event }) => event.pdu);
    async function send(event: { eventId: string; pdu: JsonObject }, more: JsonObject = {}): Asked {
      const path = `${v2}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = {
        room_version: room.version.id,
        event: event.pdu,
        invite_room_state: described(),
        ...more,
      };
      return evil.ask('a.test', 'PUT', path, body);
    }
    const isShown = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;

    for (const version of ['1', '6', '11', '12']) {
      it(`is signed for, and shown, when it does not lie, in room version ${version}`, async () => {
        room = newRoom(version);
        const event = invitation();
        const { status, body } = await send(event);
        assert.equal(status, 200, JSON.stringify(body));
        const signed = body['event'] as JsonObject;
        const { signatures, ...rest } = signed;
        const { signatures: before, ...sent } = event.pdu;
        assert.deepEqual(rest, sent);
        assert.deepEqual(Object.keys(signatures as object).sort(), ['a.test', 'evil.test']);
        assert.deepEqual((signatures as JsonObject)['evil.test'], (before as JsonObject)['evil.test']);
        assert.equal(await isShown(), true);
      });
    }

    it('may use the first version of the endpoint, for old rooms', async () => {
      room = newRoom('1');
      const event = invitation();
      const path = `${v1}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = { ...event.pdu, unsigned: { invite_room_state: described() } };
      const answer = await evil.ask('a.test', 'PUT', path, body);
      assert.equal(answer.status, 200);
      const [status, { event: signed }] = answer.body as unknown as [number, { event: JsonObject }];
      assert.equal(status, 200);
      assert.ok((signed['signatures'] as JsonObject)['a.test']);
      assert.equal(await isShown(), true);
    });

    it('gets nothing signed that is no invite of a user of this server by one of its own', async () => {
      const wrong: [what: string, change: Parameters<typeof invitation>[0]][] = [
        ['another type', { type: 'm.room.power_levels', stateKey: '', content: {} }],
        ['another membership', { content: { membership: 'join' } }],
        ['a sender of this server', { sender: anna.id }],
        ['a sender of a third server', { sender: '@x:third.test' }],
        ['a user of a third server', { stateKey: '@x:third.test' }],
        ['nobody', { stateKey: 'anna' }],
      ];
      for (const [what, change] of wrong) {
        await refused(send(invitation(change)), 400, 'M_INVALID_PARAM', what);
      }
      await refused(send(invitation({ stateKey: '@nobody:a.test' })), 404, 'M_NOT_FOUND');
      await refused(send(invitation(), { room_version: '99' }), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await refused(send(invitation(), { room_version: '__proto__' }), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      const event = invitation();
      await refused(send({ ...event, eventId: `$${'A'.repeat(43)}` }), 400, 'M_INVALID_PARAM');
      await refused(send({ ...event, pdu: { ...event.pdu, signatures: {} } }), 400, 'M_INVALID_PARAM');
      const changed = { ...event.pdu, content: { membership: 'invite', is_direct: true } };
      await refused(send({ ...event, pdu: changed }), 400, 'M_INVALID_PARAM');
      const forged = signEvent(invitation(), {
        serverName: 'evil.test',
        key: newSigningKey('scripted'),
      }).event;
      await refused(send(forged), 400, 'M_INVALID_PARAM');
      assert.equal(await isShown(), false);
    });

    it('gets nobody invited again who is in the room', async () => {
      const roomId = await anna.createRoom({ room_version: '11' });
      room.roomId = roomId;
      await refused(send(invitation()), 403, 'M_FORBIDDEN');
    });

    it('has to describe rooms of version 12 rightly', async () => {
      room = newRoom('12');
      const event = invitation();
      await refused(send(event, { invite_room_state: [] }), 400, 'M_INVALID_PARAM');
      const other = newRoom('12').state.values().next().value!.event.pdu;
      await refused(send(event, { invite_room_state: [other] }), 400, 'M_INVALID_PARAM');
      const unsigned = described().map((pdu) => ({ ...pdu, signatures: {} }));
      await refused(send(event, { invite_room_state: unsigned }), 400, 'M_INVALID_PARAM');
      const stripped = { type: 'm.room.create', state_key: '', sender: room.creator, content: {} };
      await refused(send(event, { invite_room_state: [stripped] }), 400, 'M_INVALID_PARAM');
      const many = Array<JsonObject>(101).fill(described()[0]!);
      await refused(send(event, { invite_room_state: many }), 400, 'M_INVALID_PARAM');
      assert.equal(await isShown(), false);
    });

    it('can not break syncs by what it says of a room', async () => {
      const nonsense = [null, 5, 'x', [], {}, { type: 1, state_key: '', sender: 'x', content: {} }];
      const odd = { type: 'm.room.name', state_key: '', sender: '', content: { name: { a: ['\0'] } } };
      const long = {
        type: 'm.room.topic',
        state_key: '',
        sender: 'x',
        content: { topic: 'x'.repeat(200_000) },
      };
      const { status, body } = await send(invitation(), { invite_room_state: [...nonsense, odd, long] });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(await isShown(), true);
      const raw = JSON.stringify(await anna.sync());
      assert.ok(raw.length < 100_000);
      await anna.leave(room.roomId);
      assert.equal(await isShown(), false);
    });

    it('can end its own invites, and nobody else’s', async () => {
      assert.equal((await send(invitation())).status, 200);
      const invited = room.setState('m.room.member', { membership: 'invite' }, anna.id);
      assert.ok(invited);
      const removal = room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: anna.id,
        content: { membership: 'leave' },
      }).event;
      const deliver = async (server: ScriptedServer, pdu: JsonObject, txn: string) => {
        const content = { origin: server.name, origin_server_ts: Date.now(), pdus: [pdu] };
        return (await server.ask('a.test', 'PUT', `${v1}/send/${txn}`, content)).body['pdus'] as JsonObject;
      };
      const third = await several.scripted('third.test');
      const stranger = { serverName: 'third.test', key: third.key };
      const foreign = new SignedRoom('11', stranger);
      foreign.roomId = room.roomId;
      const byStranger = foreign.build({
        type: 'm.room.member',
        sender: '@x:third.test',
        stateKey: anna.id,
        content: { membership: 'leave' },
      }).event;
      await deliver(third, byStranger.pdu, 'one');
      assert.equal(await isShown(), true);
      await deliver(evil, { ...removal.pdu, signatures: {} }, 'two');
      assert.equal(await isShown(), true);
      const outcome = await deliver(evil, removal.pdu, 'three');
      assert.deepEqual(outcome, { [removal.eventId]: {} });
      assert.equal(await isShown(), false);
    });
  });
});
