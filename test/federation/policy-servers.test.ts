import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import {
  getRoomVersion,
  type JsonObject,
  policyKeyId,
  receivePdu,
  signEvent,
} from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedAnswer, ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

const signPath = 'POST /_matrix/policy/v1/sign';
const version = getRoomVersion('11')!;
const policyKey = newSigningKey('policy_server');
const refusal: ScriptedAnswer = [400, { errcode: 'M_FORBIDDEN', error: 'This looks like spam' }];

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a room with a policy server', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let policy: ScriptedServer;
    let b: ScriptedServer;
    let anna: TestClient;
    let roomId: string;
    let remoteMember: ScriptedMember;

    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test');
      policy = await several.scripted('policy.test');
      b = await several.scripted('b.test');
      anna = await a.registerClient('anna');
    });
    after(() => several.stop());

    const signed = (pdu: JsonObject, key = policyKey): JsonObject => {
      const { event } = signEvent(receivePdu(pdu, version).event, { serverName: policy.name, key });
      return event.pdu;
    };
    /** The response to a request for a signature of an event. */
    const signResponse = (pdu: JsonObject, key = policyKey): JsonObject => {
      const ofServer = (signed(pdu, key)['signatures'] as Record<string, JsonObject>)[policy.name];
      return { [policy.name]: { [policyKeyId]: ofServer![policyKeyId]! } };
    };
    const signRequests = () =>
      policy.receivedRequests.filter(({ path }) => path === '/_matrix/policy/v1/sign');
    const content = () => ({ via: policy.name, public_keys: { ed25519: policyKey.publicKey.base64 } });
    const usePolicy = () => anna.setState(roomId, 'm.room.policy', content());
    const send = (body: string, txnId = `t${Math.random()}`) =>
      anna.call('PUT', `/rooms/${enc(roomId)}/send/m.room.message/${txnId}`, { msgtype: 'm.text', body });
    const messageBodies = async () => {
      const { chunk } = await anna.do('GET', `/rooms/${enc(roomId)}/messages`, undefined, {
        dir: 'b',
        limit: 100,
      });
      const events = chunk as { type: string; content: { body: string } }[];
      return events.filter(({ type }) => type === 'm.room.message').map((event) => event.content.body);
    };
    const waitForMessage = (body: string) =>
      eventually(body, async () => (await messageBodies()).includes(body));

    beforeEach(async () => {
      roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      policy.on(signPath, ({ body }) => signResponse(body));
      await ScriptedMember.join(policy, 'a.test', roomId, '@bot:policy.test');
      remoteMember = await ScriptedMember.join(b, 'a.test', roomId, '@bob:b.test');
      policy.receivedRequests.splice(0);
    });

    it('sends only events that the policy server has signed, and answers with the refusal of the policy server', async () => {
      assert.equal((await send('before')).status, 200);
      await usePolicy();
      assert.equal(signRequests().length, 0);
      const { status, body } = await send('signed', 'once');
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual((await send('signed', 'once')).body, body);
      assert.equal(signRequests().length, 1);
      assert.equal((signRequests()[0]!.body['content'] as JsonObject)['body'], 'signed');
      const path = `/_matrix/federation/v1/event/${enc(String(body['event_id']))}`;
      const { body: answer } = await b.request('a.test', 'GET', path);
      const [pdu] = answer['pdus'] as [Record<string, Record<string, JsonObject>>];
      assert.deepEqual(Object.keys(pdu['signatures']!), ['a.test', 'policy.test']);
      assert.deepEqual(pdu['signatures'], signed(pdu as JsonObject)['signatures']);

      policy.on(signPath, () => refusal);
      const refused = await send('spam');
      assert.deepEqual(
        [refused.status, refused.body],
        [400, { errcode: 'M_FORBIDDEN', error: 'This looks like spam' }],
      );
      const topic = await anna.call('PUT', `/rooms/${enc(roomId)}/state/m.room.topic/`, { topic: 'spam' });
      assert.equal(topic.status, 400);
      assert.deepEqual(await messageBodies(), ['signed', 'before']);
      assert.ok(!remoteMember.received.some(({ content: { body: text } }) => text === 'spam'));
    });

    it('sends nothing while the policy server fails, until m.room.policy is emptied', async () => {
      await usePolicy();
      const answers: ScriptedAnswer[] = [
        [500, {}],
        [503, { errcode: 'M_UNKNOWN', error: 'x' }],
        {},
        { [policy.name]: {} },
        { [policy.name]: { [policyKeyId]: 'AAAA' } },
        { [policy.name]: { [policyKeyId]: 7 } },
        { [policy.name]: [] as unknown as JsonObject },
        [401, { errcode: 'M_UNKNOWN_TOKEN', error: 'log out' }],
      ];
      for (const answer of answers) {
        policy.on(signPath, () => answer);
        const { status, body } = await send('unsigned');
        const isRefusal = Array.isArray(answer) && answer[0] === 401;
        assert.deepEqual([status, body['errcode']], isRefusal ? [403, 'M_FORBIDDEN'] : [502, 'M_UNKNOWN']);
      }
      policy.on(signPath, ({ body }) => signResponse(body, newSigningKey('policy_server')));
      assert.equal((await send('unsigned')).status, 502);
      policy.on(signPath, () => [429, { errcode: 'M_LIMIT_EXCEEDED', error: 'slow', retry_after_ms: 7 }]);
      assert.deepEqual((await send('unsigned')).body['retry_after_ms'], 7);
      await anna.setState(roomId, 'm.room.policy', {});
      const before = signRequests().length;
      assert.equal((await send('free')).status, 200);
      assert.equal(signRequests().length, before);
      assert.deepEqual(await messageBodies(), ['free']);
    });

    it('ignores an invalid or redacted m.room.policy, and a policy server that is not in the room', async () => {
      const invalidContents: JsonObject[] = [
        { ...content(), via: 'nobody.test' },
        { ...content(), via: 'a.test' },
        { ...content(), via: 7 },
        { ...content(), public_keys: {} },
        { ...content(), public_keys: { ed25519: 'short' } },
        { via: policy.name },
      ];
      for (const invalidContent of invalidContents) {
        await anna.setState(roomId, 'm.room.policy', invalidContent);
        assert.equal((await send('free')).status, 200, JSON.stringify(invalidContent));
      }
      assert.equal(signRequests().length, 0);
      const enabled = await usePolicy();
      assert.equal((await send('checked')).status, 200);
      assert.equal(signRequests().length, 1);
      await anna.redact(roomId, enabled);
      assert.equal((await send('free again')).status, 200);
      assert.equal(signRequests().length, 2);
      await usePolicy();
      await anna.do('POST', `/rooms/${enc(roomId)}/kick`, { user_id: '@bot:policy.test' });
      assert.equal((await send('without it')).status, 200);
      assert.equal(signRequests().length, 3);
    });

    it('requests the signature of the policy server for remote events that lack it', async () => {
      await usePolicy();
      await eventually('the policy', () => remoteMember.latest.type === 'm.room.policy');
      const signedMessage = remoteMember.message('signed already');
      await remoteMember.send(signed(signedMessage.event.pdu));
      remoteMember.advanceTo(signedMessage);
      await waitForMessage('signed already');
      assert.equal(signRequests().length, 0);

      await remoteMember.say('signed on demand');
      await waitForMessage('signed on demand');
      assert.equal(signRequests().length, 1);
      const path = `/_matrix/federation/v1/event/${enc(remoteMember.latest.eventId)}`;
      const { body: answer } = await b.request('a.test', 'GET', path);
      const [pdu] = answer['pdus'] as [JsonObject];
      assert.deepEqual(Object.keys(pdu['signatures'] as JsonObject).sort(), ['b.test', 'policy.test']);

      const wronglySigned = remoteMember.message('signed with another key');
      await remoteMember.send(signed(wronglySigned.event.pdu, newSigningKey('policy_server')));
      remoteMember.advanceTo(wronglySigned);
      await waitForMessage('signed with another key');
      assert.equal(signRequests().length, 2);

      policy.on(signPath, () => refusal);
      await remoteMember.say('spam');
      // The event is checked asynchronously, so the refusal stays scripted until it has been requested.
      await eventually('the refusal', () => signRequests().length === 3);
      policy.on(signPath, ({ body }) => signResponse(body));
      await remoteMember.say('after all');
      await waitForMessage('after all');
      assert.ok(!(await messageBodies()).includes('spam'));
      assert.equal((await send('still here')).status, 200);
    });

    it('soft-fails unsigned remote events while the policy server fails, and accepts signed ones', async () => {
      await usePolicy();
      await eventually('the policy', () => remoteMember.latest.type === 'm.room.policy');
      policy.on(signPath, () => [500, {}]);
      await remoteMember.say('one');
      await remoteMember.say('two');
      const signedMessage = remoteMember.message('signed');
      await remoteMember.send(signed(signedMessage.event.pdu));
      await waitForMessage('signed');
      assert.deepEqual(await messageBodies(), ['signed']);
      // The policy server receives no further request right after a failure.
      assert.equal(signRequests().length, 1);
    });

    it('refuses joins and invites that the policy server refuses', async () => {
      await usePolicy();
      const c = await several.scripted(`c${kind}.test`);
      policy.on(signPath, () => refusal);
      const joining = await ScriptedMember.tryToJoin(c, 'a.test', roomId, `@carol:${c.name}`);
      assert.deepEqual([joining.status, joining.body['errcode']], [400, 'M_FORBIDDEN']);
      const invite = await anna.call('POST', `/rooms/${enc(roomId)}/invite`, { user_id: `@carol:${c.name}` });
      assert.deepEqual([invite.status, invite.body['errcode']], [400, 'M_FORBIDDEN']);
      assert.ok(!c.receivedRequests.some(({ path }) => path.includes('/invite/')));
      policy.on(signPath, ({ body }) => signResponse(body));
      await ScriptedMember.join(c, 'a.test', roomId, `@carol:${c.name}`);
    });
  });
});
