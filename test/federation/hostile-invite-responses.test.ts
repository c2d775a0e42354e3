import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type JsonObject, receivePdu, roomVersions, signEvent } from '../../src/protocol/index.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import type {
  ScriptedAnswer,
  ScriptedRequest,
  ScriptedServer,
} from '../support/other-servers/scripted-server.ts';
import { SeveralServers, withoutRetries } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const invitee = '@invitee:far.test';
const v1 = '/_matrix/federation/v1';
const v2 = '/_matrix/federation/v2';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('an invite to a user of a remote server', () => {
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
      far.receivedRequests.splice(0);
    });

    const signedByFar = (event: JsonObject, key = far.key): JsonObject =>
      signEvent(receivePdu(event, roomVersions.get(version)!).event, { serverName: 'far.test', key }).event
        .pdu;
    const answerInvites = (answer: (event: JsonObject, request: ScriptedRequest) => ScriptedAnswer) =>
      far.on(`PUT ${v2}/invite/`, (request) => answer(request.body['event'] as JsonObject, request));
    const invite = () => anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: invitee });
    async function membershipOfInvitee() {
      const path = `/rooms/${enc(roomId)}/state/m.room.member/${enc(invitee)}`;
      const { status, body } = await anna.call('GET', path);
      return status === 200 ? body['membership'] : undefined;
    }

    it('sends signed events as stripped state, and invites the user when the remote server has signed the invite', async () => {
      answerInvites((event) => ({ event: { ...signedByFar(event), unsigned: { evil: true } } }));
      const { status, raw } = await invite();
      assert.equal(status, 200, raw);
      assert.equal(await membershipOfInvitee(), 'invite');
      const { body } = far.receivedRequests.find(({ path }) => path.includes('/invite/'))!;
      assert.equal(body['room_version'], '11');
      const inviteState = body['invite_room_state'] as JsonObject[];
      const byType = new Map(inviteState.map((pdu) => [pdu['type'], pdu]));
      assert.deepEqual(byType.get('m.room.name')?.['content'], { name: 'Inn' });
      for (const pdu of inviteState) {
        assert.equal(receivePdu(pdu, roomVersions.get('11')!).event.roomId, roomId);
        assert.ok((pdu['signatures'] as JsonObject)['a.test']);
      }
      assert.ok(byType.has('m.room.create'));
    });

    const wrongAnswers: [what: string, answer: (event: JsonObject) => ScriptedAnswer][] = [
      ['without the signature of the remote server', (event) => ({ event })],
      [
        'with other content',
        (event) => ({ event: { ...signedByFar(event), content: { membership: 'join' } } }),
      ],
      ['of another room', (event) => ({ event: { ...signedByFar(event), room_id: '!other:a.test' } })],
      ['of another user', (event) => ({ event: { ...signedByFar(event), state_key: anna.id } })],
      ['with a signature of another key', (event) => ({ event: signedByFar(event, newSigningKey('other')) })],
      ['with a forged signature', (event) => ({ event: signedByFar(event, newSigningKey('scripted')) })],
      ['that is not an event', () => ({ event: 5 })],
      ['that is an empty object', () => ({})],
      ['with status 500', () => [500, {}]],
    ];
    for (const [what, answer] of wrongAnswers) {
      it(`fails the invite with 502 for a response ${what}`, async () => {
        answerInvites(answer);
        const { status, body, raw } = await invite();
        assert.deepEqual([status, body['errcode']], [502, 'M_UNKNOWN'], raw);
        assert.equal(await membershipOfInvitee(), undefined);
      });
    }

    it('fails the invite with the status and errcode of a remote server that refuses the invite', async () => {
      for (const [refusal, errcode] of [
        [403, 'M_FORBIDDEN'],
        [403, 'M_INVITE_BLOCKED'],
        [400, 'M_INVALID_PARAM'],
        [400, 'M_BAD_JSON'],
        [403, 'M_UNKNOWN'],
        [418, 'ORG.EXAMPLE.TEAPOT'],
      ] as const) {
        answerInvites(() => [refusal, { errcode, error: 'no' }]);
        const { status, body } = await invite();
        assert.deepEqual([status, body['errcode'], body['error']], [refusal, errcode, 'no']);
      }
      assert.equal(await membershipOfInvitee(), undefined);
    });

    it('sends an invite in room version 1 to the v1 endpoint when the remote server has no v2 endpoint', async () => {
      version = '1';
      roomId = await anna.createRoom({ preset: 'private_chat', room_version: '1' });
      answerInvites(() => [404, { errcode: 'M_UNRECOGNIZED', error: 'Unrecognized' }]);
      far.on(`PUT ${v1}/invite/`, ({ body: { unsigned, ...event } }, response) => {
        assert.ok(Array.isArray((unsigned as JsonObject)['invite_room_state']));
        const body = JSON.stringify([200, { event: signedByFar(event) }]);
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
        return undefined;
      });
      const { status, raw } = await invite();
      assert.equal(status, 200, raw);
      assert.equal(await membershipOfInvitee(), 'invite');
    });
  });
});
