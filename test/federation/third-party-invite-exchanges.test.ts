import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu, roomVersions, signEvent, signJson } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const invitee = '@invitee:far.test';

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
    const inviteDraft = (change: JsonObject = {}, key = identity) => ({
      type: 'm.room.member',
      room_id: roomId,
      sender: anna.id,
      state_key: invitee,
      content: {
        membership: 'invite',
        third_party_invite: {
          display_name: 'g...',
          signed: signJson({ mxid: invitee, token: 'token', ...change }, 'identity.test', key),
        },
      },
    });
    const exchange = (body: JsonObject) =>
      far.request('a.test', 'PUT', `/_matrix/federation/v1/exchange_third_party_invite/${enc(roomId)}`, body);
    const membershipOfInvitee = async () => {
      const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(invitee)}`;
      const { status, body } = await anna.call('GET', path);
      return status === 200 ? body['membership'] : undefined;
    };
    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'private_chat', room_version: '11', name: 'Inn' });
      const content = {
        display_name: 'invitee at example',
        public_key: identity.publicKey.base64,
        public_keys: [{ public_key: identity.publicKey.base64 }],
      };
      await anna.setState(roomId, 'm.room.third_party_invite', content, 'token');
    });

    it('turns a third-party invite into an invite of the user', async () => {
      const { status, body } = await exchange(inviteDraft());
      assert.deepEqual([status, body], [200, {}]);
      assert.equal(await membershipOfInvitee(), 'invite');
    });

    it('refuses exchanges that are not authorized by the third-party invite', async () => {
      const refusedExchanges: [what: string, body: JsonObject][] = [
        ['another key', inviteDraft({}, newSigningKey('other'))],
        ['another token', inviteDraft({ token: 'other' })],
        ['signed for another user', inviteDraft({ mxid: '@other:far.test' })],
        ['another room', { ...inviteDraft(), room_id: '!other:a.test' }],
        ['a user of this server', { ...inviteDraft({ mxid: anna.id }), state_key: anna.id }],
        ['a sender of the remote server', { ...inviteDraft(), sender: invitee }],
        ['another membership', { ...inviteDraft(), content: { membership: 'join' } }],
        ['no signed object', { ...inviteDraft(), content: { membership: 'invite' } }],
        ['another type', { ...inviteDraft(), type: 'm.room.topic' }],
      ];
      for (const [what, body] of refusedExchanges) {
        const { status } = await exchange(body);
        assert.ok(status === 400 || status === 403, `${what}: ${status}`);
      }
      assert.equal(await membershipOfInvitee(), undefined);
    });
  });
});
