import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, signEvent } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';
import { assertError, type PendingAnswer } from './pending-answer.ts';

const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('invites of a hostile server', () => {
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
    const strippedState = () => [...room.state.values()].map(({ event }) => event.pdu);
    async function putInvite(
      event: { eventId: string; pdu: JsonObject },
      more: JsonObject = {},
    ): PendingAnswer {
      const path = `${v2}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = {
        room_version: room.version.id,
        event: event.pdu,
        invite_room_state: strippedState(),
        ...more,
      };
      return evil.request('a.test', 'PUT', path, body);
    }
    const isShown = async () => (await anna.sync()).rooms?.invite?.[room.roomId] !== undefined;

    for (const version of ['1', '6', '11', '12']) {
      it(`signs and shows a valid invite in room version ${version}`, async () => {
        room = newRoom(version);
        const event = invitation();
        const { status, body } = await putInvite(event);
        assert.equal(status, 200, JSON.stringify(body));
        const signed = body['event'] as JsonObject;
        const { signatures, ...rest } = signed;
        const { signatures: sentSignatures, ...sent } = event.pdu;
        assert.deepEqual(rest, sent);
        assert.deepEqual(Object.keys(signatures as object).sort(), ['a.test', 'evil.test']);
        assert.deepEqual(
          (signatures as JsonObject)['evil.test'],
          (sentSignatures as JsonObject)['evil.test'],
        );
        assert.equal(await isShown(), true);
      });
    }

    it('accepts invites in room version 1 by the v1 endpoint', async () => {
      room = newRoom('1');
      const event = invitation();
      const path = `${v1}/invite/${enc(room.roomId)}/${enc(event.eventId)}`;
      const body = { ...event.pdu, unsigned: { invite_room_state: strippedState() } };
      const answer = await evil.request('a.test', 'PUT', path, body);
      assert.equal(answer.status, 200);
      const [status, { event: signed }] = answer.body as unknown as [number, { event: JsonObject }];
      assert.equal(status, 200);
      assert.ok((signed['signatures'] as JsonObject)['a.test']);
      assert.equal(await isShown(), true);
    });

    it('refuses events that are no invites, and invites that are forged, in an unknown room version, or not from a user of the sending server to a user of this server', async () => {
      const wrongEvents: [what: string, change: Parameters<typeof invitation>[0]][] = [
        ['another type', { type: 'm.room.power_levels', stateKey: '', content: {} }],
        ['another membership', { content: { membership: 'join' } }],
        ['a user of a third server', { stateKey: '@x:third.test' }],
        ['an invalid user id', { stateKey: 'anna' }],
      ];
      for (const [what, change] of wrongEvents) {
        await assertError(putInvite(invitation(change)), 400, 'M_INVALID_PARAM', what);
      }
      for (const sender of [anna.id, '@x:third.test']) {
        await assertError(putInvite(invitation({ sender })), 400, 'M_INVALID_PARAM', sender);
      }
      await assertError(putInvite(invitation(), { room_version: '99' }), 400, 'M_INCOMPATIBLE_ROOM_VERSION');
      await assertError(
        putInvite(invitation(), { room_version: '__proto__' }),
        400,
        'M_INCOMPATIBLE_ROOM_VERSION',
      );
      const event = invitation();
      await assertError(putInvite({ ...event, eventId: `$${'A'.repeat(43)}` }), 400, 'M_INVALID_PARAM');
      await assertError(
        putInvite({ ...event, pdu: { ...event.pdu, signatures: {} } }),
        400,
        'M_INVALID_PARAM',
      );
      const changed = { ...event.pdu, content: { membership: 'invite', is_direct: true } };
      await assertError(putInvite({ ...event, pdu: changed }), 400, 'M_INVALID_PARAM');
      const forged = signEvent(invitation(), {
        serverName: 'evil.test',
        key: newSigningKey('scripted'),
      }).event;
      await assertError(putInvite(forged), 400, 'M_INVALID_PARAM');
      assert.equal(await isShown(), false);
    });

    it('answers 400 M_BAD_JSON to invites that contain a float, in room version 11', async () => {
      const { eventId, pdu } = invitation();
      for (const change of [{ content: { membership: 'invite', bad: 1.5 } }, { depth: 1.5 }, { more: 1.5 }]) {
        const event = { eventId, pdu: { ...pdu, ...change } };
        await assertError(putInvite(event), 400, 'M_BAD_JSON', JSON.stringify(change));
        const path = `${v1}/invite/${enc(room.roomId)}/${enc(eventId)}`;
        await assertError(evil.request('a.test', 'PUT', path, event.pdu), 400, 'M_BAD_JSON', 'v1');
      }
      assert.equal(await isShown(), false);
    });

    it('refuses an invite when the user is already in the room', async () => {
      const roomId = await anna.createRoom({ room_version: '11' });
      room.roomId = roomId;
      await assertError(putInvite(invitation()), 403, 'M_FORBIDDEN');
    });

    it('requires a valid create event and at most 100 events in the stripped state of room version 12', async () => {
      room = newRoom('12');
      const event = invitation();
      await assertError(putInvite(event, { invite_room_state: [] }), 400, 'M_INVALID_PARAM');
      const createOfOtherRoom = newRoom('12').state.values().next().value!.event.pdu;
      await assertError(putInvite(event, { invite_room_state: [createOfOtherRoom] }), 400, 'M_INVALID_PARAM');
      const unsigned = strippedState().map((pdu) => ({ ...pdu, signatures: {} }));
      await assertError(putInvite(event, { invite_room_state: unsigned }), 400, 'M_INVALID_PARAM');
      const stripped = { type: 'm.room.create', state_key: '', sender: room.creator, content: {} };
      await assertError(putInvite(event, { invite_room_state: [stripped] }), 400, 'M_INVALID_PARAM');
      const tooManyEvents = Array<JsonObject>(101).fill(strippedState()[0]!);
      await assertError(putInvite(event, { invite_room_state: tooManyEvents }), 400, 'M_INVALID_PARAM');
      assert.equal(await isShown(), false);
    });

    it('shows an invite with malformed stripped state in /sync', async () => {
      const nonsense = [null, 5, 'x', [], {}, { type: 1, state_key: '', sender: 'x', content: {} }];
      const malformedName = {
        type: 'm.room.name',
        state_key: '',
        sender: '',
        content: { name: { a: ['\0'] } },
      };
      const longTopic = {
        type: 'm.room.topic',
        state_key: '',
        sender: 'x',
        content: { topic: 'x'.repeat(200_000) },
      };
      const { status, body } = await putInvite(invitation(), {
        invite_room_state: [...nonsense, malformedName, longTopic],
      });
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(await isShown(), true);
      const raw = JSON.stringify(await anna.sync());
      assert.ok(raw.length < 100_000);
      await anna.leave(room.roomId);
      assert.equal(await isShown(), false);
    });

    it('accepts the retraction of an invite from the inviting server only', async () => {
      assert.equal((await putInvite(invitation())).status, 200);
      room.setState('m.room.member', { membership: 'invite' }, anna.id);
      const removal = room.build({
        type: 'm.room.member',
        sender: room.creator,
        stateKey: anna.id,
        content: { membership: 'leave' },
      }).event;
      const deliver = async (server: ScriptedServer, pdu: JsonObject, txn: string) => {
        const content = { origin: server.name, origin_server_ts: Date.now(), pdus: [pdu] };
        return (await server.request('a.test', 'PUT', `${v1}/send/${txn}`, content)).body[
          'pdus'
        ] as JsonObject;
      };
      const third = await several.scripted('third.test');
      const signerOfThird = { serverName: 'third.test', key: third.key };
      const foreign = new SignedRoom('11', signerOfThird);
      foreign.roomId = room.roomId;
      const leaveByThird = foreign.build({
        type: 'm.room.member',
        sender: '@x:third.test',
        stateKey: anna.id,
        content: { membership: 'leave' },
      }).event;
      await deliver(third, leaveByThird.pdu, 'one');
      assert.equal(await isShown(), true);
      await deliver(evil, { ...removal.pdu, signatures: {} }, 'two');
      assert.equal(await isShown(), true);
      const outcome = await deliver(evil, removal.pdu, 'three');
      assert.deepEqual(outcome, { [removal.eventId]: {} });
      assert.equal(await isShown(), false);
    });
  });
});
