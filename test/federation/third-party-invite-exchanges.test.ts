import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu, roomVersions, signEvent, signJson } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const guest = '@guest:far.test';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('PUT /exchange_third_party_invite/{roomId}', () => {
    let several: SeveralServers;
    let far: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    before(async () => {
      ({
        several,
        peer: far,
        anna,
      } = await SeveralServers.withScriptedServer(kind, 'far.test', withoutRetries));
      far.on('PUT /_matrix/federation/v2/invite/', ({ body }) => {
        const { event } = receivePdu(body['event'] as JsonObject, roomVersions.get('11')!);
        return { event: signEvent(event, { serverName: 'far.test', key: far.key }).event.pdu };
      });
    });
    after(() => several.stop());

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
      far.request('a.test', 'PUT', `/_matrix/federation/v1/exchange_third_party_invite/${enc(roomId)}`, body);
    const guestMembership = async () => {
      const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(guest)}`;
      const { status, body } = await anna.call('GET', path);
      return status === 200 ? body['membership'] : undefined;
    };
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'private_chat', room_version: '11', name: 'Inn' });
      const content = {
        display_name: 'guest at example',
        public_key: identity.publicKey.base64,
        public_keys: [{ public_key: identity.publicKey.base64 }],
      };
      await anna.setState(roomId, 'm.room.third_party_invite', content, 'token');
    });

    it('turns a third-party invite into an invite of the user', async () => {
      const { status, body } = await exchange(partial());
      assert.deepEqual([status, body], [200, {}]);
      assert.equal(await guestMembership(), 'invite');
    });

    it('refuses exchanges that are not authorized by the third-party invite', async () => {
      const refusedExchanges: [what: string, body: JsonObject][] = [
        ['another key', partial({}, newSigningKey('other'))],
        ['another token', partial({ token: 'other' })],
        ['signed for another user', partial({ mxid: '@other:far.test' })],
        ['another room', { ...partial(), room_id: '!other:a.test' }],
        ['a user of this server', { ...partial({ mxid: anna.id }), state_key: anna.id }],
        ['a sender of the remote server', { ...partial(), sender: guest }],
        ['another membership', { ...partial(), content: { membership: 'join' } }],
        ['no signed object', { ...partial(), content: { membership: 'invite' } }],
        ['another type', { ...partial(), type: 'm.room.topic' }],
      ];
      for (const [what, body] of refusedExchanges) {
        const { status } = await exchange(body);
        assert.ok(status === 400 || status === 403, `${what}: ${status}`);
      }
      assert.equal(await guestMembership(), undefined);
    });
  });
});
