import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu, roomVersions, signEvent, signJson } from '../../src/protocol/index.ts';
import { forServerDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type {
  ScriptedAnswer,
  ScriptedRequest,
  ScriptedServer,
} from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const guest = '@guest:far.test';
const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forServerDatabases(import.meta.url, ({ kind }) => {
  describe('the server of somebody who is invited', () => {
    let several: SeveralServers;
    let far: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    let version: string;
    before(async () => {
      ({
        several,
        peer: far,
        anna,
      } = await SeveralServers.withScriptedServer(kind, 'far.test', withoutRetries));
    });
    after(() => several.stop());
    beforeEach(async () => {
      version = '11';
      roomId = await anna.createRoom({ preset: 'private_chat', room_version: version, name: 'Inn' });
      far.asked.splice(0);
    });

    /** The invite with the signature of the server. */
    const signed = (event: JsonObject, key = far.key): JsonObject =>
      signEvent(receivePdu(event, roomVersions.get(version)!).event, { serverName: 'far.test', key }).event
        .pdu;
    const answers = (answer: (event: JsonObject, request: ScriptedRequest) => ScriptedAnswer) =>
      far.on(`PUT ${v2}/invite/`, (request) => answer(request.body['event'] as JsonObject, request));
    const invite = () => anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: guest });
    async function memberOf() {
      const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(guest)}`;
      const { status, body } = await anna.call('GET', path);
      return status === 200 ? body['membership'] : undefined;
    }

    it('is told of the room, and its signature goes into it', async () => {
      answers((event) => ({ event: { ...signed(event), unsigned: { lies: true } } }));
      const { status, raw } = await invite();
      assert.equal(status, 200, raw);
      assert.equal(await memberOf(), 'invite');
      const { body } = far.asked.find(({ path }) => path.includes('/invite/'))!;
      assert.equal(body['room_version'], '11');
      const shown = body['invite_room_state'] as JsonObject[];
      const byType = new Map(shown.map((pdu) => [pdu['type'], pdu]));
      assert.deepEqual(byType.get('m.room.name')?.['content'], { name: 'Inn' });
      for (const pdu of shown) {
        assert.equal(receivePdu(pdu, roomVersions.get('11')!).event.roomId, roomId);
        assert.ok((pdu['signatures'] as JsonObject)['a.test']);
      }
      assert.ok(byType.has('m.room.create'));
    });

    const lies: [what: string, answer: (event: JsonObject) => ScriptedAnswer][] = [
      ['without its signature', (event) => ({ event })],
      ['with another content', (event) => ({ event: { ...signed(event), content: { membership: 'join' } } })],
      ['of another room', (event) => ({ event: { ...signed(event), room_id: '!other:a.test' } })],
      ['of another user', (event) => ({ event: { ...signed(event), state_key: anna.id } })],
      ['with a signature of another key', (event) => ({ event: signed(event, newSigningKey('other')) })],
      ['with a forged signature', (event) => ({ event: signed(event, newSigningKey('scripted')) })],
      ['that is none', () => ({ event: 5 })],
      ['that is empty', () => ({})],
      ['of an error of its own', () => [500, {}]],
      ['that blames us', () => [400, { errcode: 'M_INVALID_PARAM', error: 'no' }]],
    ];
    for (const [what, answer] of lies) {
      it(`gets nothing into the room by an answer ${what}`, async () => {
        answers(answer);
        const { status, body, raw } = await invite();
        assert.deepEqual([status, body['errcode']], [502, 'M_UNKNOWN'], raw);
        assert.equal(await memberOf(), undefined);
      });
    }

    it('may refuse', async () => {
      for (const errcode of ['M_FORBIDDEN', 'M_INVITE_BLOCKED']) {
        answers(() => [403, { errcode, error: 'no' }]);
        const { status, body } = await invite();
        assert.deepEqual([status, body['errcode']], [403, errcode]);
      }
      assert.equal(await memberOf(), undefined);
    });

    it('may be an old one, in rooms of old versions', async () => {
      version = '1';
      roomId = await anna.createRoom({ preset: 'private_chat', room_version: '1' });
      answers(() => [404, { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized' }]);
      far.on(`PUT ${v1}/invite/`, ({ body: { unsigned, ...event } }, response) => {
        assert.ok(Array.isArray((unsigned as JsonObject)['invite_room_state']));
        const body = JSON.stringify([200, { event: signed(event) }]);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
        return undefined;
      });
      const { status, raw } = await invite();
      assert.equal(status, 200, raw);
      assert.equal(await memberOf(), 'invite');
    });

    describe('of somebody whose address was invited', () => {
      const identity = newSigningKey('identity');
      const partial = (change: JsonObject = {}, sign = identity) => ({
        type: 'm.room.member',
        room_id: roomId,
        sender: anna.id,
        state_key: guest,
        content: {
          membership: 'invite',
          third_party_invite: {
            display_name: 'g...',
            signed: signJson({ mxid: guest, token: 'token', ...change }, 'identity.test', sign),
          },
        },
      });
      const exchange = (body: JsonObject) =>
        far.ask('a.test', 'PUT', `${v1}/exchange_third_party_invite/${enc(roomId)}`, body);
      beforeEach(async () => {
        answers((event) => ({ event: signed(event) }));
        const content = {
          display_name: 'guest at example',
          public_key: identity.publicKey.base64,
          public_keys: [{ public_key: identity.publicKey.base64 }],
        };
        await anna.setState(roomId, 'm.room.third_party_invite', content, 'token');
      });

      it('has the invite made an invite of that user', async () => {
        const { status, body } = await exchange(partial());
        assert.deepEqual([status, body], [200, {}]);
        assert.equal(await memberOf(), 'invite');
      });

      it('gets nobody invited whom nothing entitles', async () => {
        const wrong: [what: string, body: JsonObject][] = [
          ['another key', partial({}, newSigningKey('other'))],
          ['another token', partial({ token: 'other' })],
          ['signed for another', partial({ mxid: '@other:far.test' })],
          ['another room', { ...partial(), room_id: '!other:a.test' }],
          ['a user of another server', { ...partial({ mxid: anna.id }), state_key: anna.id }],
          ['a sender of another server', { ...partial(), sender: guest }],
          ['another membership', { ...partial(), content: { membership: 'join' } }],
          ['nothing signed', { ...partial(), content: { membership: 'invite' } }],
          ['another type', { ...partial(), type: 'm.room.topic' }],
        ];
        for (const [what, body] of wrong) {
          const { status } = await exchange(body);
          assert.ok(status === 400 || status === 403, `${what}: ${status}`);
        }
        assert.equal(await memberOf(), undefined);
      });
    });
  });
});
