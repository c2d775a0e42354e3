import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { validateResponse } from '../support/matrix-spec/matrix-spec.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestUser } from '../support/servers/server.ts';
import { ClientDevice, ClientIdentity } from '../support/users/client-device.ts';

const algorithm = 'signed_curve25519';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('end-to-end encryption over federation', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let b: ScriptedServer;
    let alice: TestUser;
    let client: ClientDevice;
    let identity: ClientIdentity;
    before(async () => {
      const opened = await SeveralServers.open(kind, ['a.test']);
      several = opened.several;
      [a] = opened.servers;
      b = await several.scripted('b.test');
      alice = await a.register('alice');
      client = new ClientDevice(alice.userId, alice.deviceId);
      identity = new ClientIdentity(alice.userId);
      await call('POST', '/keys/upload', {
        device_keys: client.deviceKeys(),
        one_time_keys: client.oneTimeKeys(20),
      });
      await call('POST', '/keys/device_signing/upload', identity.keys());
      await call('PUT', `/devices/${alice.deviceId}`, { display_name: 'Secret name' });
    });
    after(() => several.stop());

    async function call(method: string, path: string, body: unknown) {
      const answer = await a.api(method, `/_matrix/client/v3${path}`, { token: alice.token, body });
      assert.equal(answer.status, 200, answer.raw);
      return answer.body;
    }

    /** Sends a request as the remote server and validates the response against the specification. */
    async function sendRequest(method: string, path: string, body?: JsonObject) {
      const url = `/_matrix/federation/v1${path}`;
      const answer = await b.request('a.test', method, url, body);
      const { problems } = validateResponse(method, url, answer.status, answer.body);
      assert.deepEqual(problems, [], `${method} ${url}: ${JSON.stringify(answer.body)}`);
      return answer;
    }

    it('GET /user/devices/{userId} returns devices, cross-signing keys and stream_id of local users only', async () => {
      const { status, body } = await sendRequest('GET', `/user/devices/${encodeURIComponent(alice.userId)}`);
      assert.equal(status, 200);
      const [device] = body['devices'] as JsonObject[];
      assert.deepEqual(Object.keys(device!).sort(), ['device_id', 'keys']);
      assert.equal(device!['device_id'], alice.deviceId);
      assert.ok((body['stream_id'] as number) > 0);
      assert.deepEqual((body['master_key'] as JsonObject)['keys'], identity.masterKey()['keys']);
      assert.deepEqual(body['self_signing_key'], identity.selfSigningKey());
      assert.equal(body['user_signing_key'], undefined);
      const unknown = await sendRequest('GET', '/user/devices/@nobody:a.test');
      assert.deepEqual(unknown.body['devices'], []);
      for (const userId of ['@x:b.test', 'x', '@x']) {
        assert.equal((await sendRequest('GET', `/user/devices/${encodeURIComponent(userId)}`)).status, 400);
      }
    });

    it('POST /user/keys/query returns keys of local users only, without device names', async () => {
      const device_keys = { [alice.userId]: [], '@x:b.test': [], '@y:c.test': [], '@nobody:a.test': [] };
      const { status, body } = await sendRequest('POST', '/user/keys/query', { device_keys });
      assert.equal(status, 200);
      const devices = body['device_keys'] as Record<string, Record<string, JsonObject>>;
      assert.deepEqual(Object.keys(devices).sort(), [alice.userId, '@nobody:a.test'].sort());
      assert.equal(devices[alice.userId]![alice.deviceId]!['unsigned'], undefined);
      assert.deepEqual(Object.keys(body['master_keys'] as object), [alice.userId]);
      assert.equal(body['user_signing_keys'], undefined);
      for (const malformed of [{}, { device_keys: [] }, { device_keys: { [alice.userId]: {} } }]) {
        assert.equal((await sendRequest('POST', '/user/keys/query', malformed as JsonObject)).status, 400);
      }
      const tooManyUsers = Object.fromEntries(Array.from({ length: 5_001 }, (_, n) => [`@u${n}:a.test`, []]));
      assert.equal(
        (await sendRequest('POST', '/user/keys/query', { device_keys: tooManyUsers })).status,
        400,
      );
    });

    it('POST /user/keys/claim returns each one-time key once', async () => {
      const one_time_keys = {
        [alice.userId]: { [alice.deviceId]: algorithm, OTHER: algorithm, 'x\0': 'x' },
        '@x:b.test': {},
      };
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => sendRequest('POST', '/user/keys/claim', { one_time_keys })),
      );
      const names = answers.flatMap(({ body }) => {
        const users = body['one_time_keys'] as Record<string, Record<string, JsonObject>>;
        assert.deepEqual(Object.keys(users), [alice.userId]);
        assert.deepEqual(Object.keys(users[alice.userId]!), [alice.deviceId]);
        return Object.keys(users[alice.userId]![alice.deviceId]!);
      });
      assert.equal(new Set(names).size, 5);
    });

    it('POST /keys/query and /keys/claim take the keys of a remote user only from the server of that user, and list failed servers', async () => {
      const bob = new ClientDevice('@bob:b.test', 'BOB');
      const evil = await several.scripted('evil.test');
      evil.on('POST /_matrix/federation/v1/user/keys/', (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"device_keys":{"@bob:b.test":');
        return undefined;
      });
      b.on('POST /_matrix/federation/v1/user/keys/query', ({ body }) => {
        assert.deepEqual(body, { device_keys: { [bob.userId]: [] } });
        return {
          device_keys: {
            [bob.userId]: { BOB: bob.deviceKeys() },
            [alice.userId]: { EVIL: bob.deviceKeys() },
          },
        };
      });
      b.on('POST /_matrix/federation/v1/user/keys/claim', ({ body }) => {
        assert.deepEqual(body, { one_time_keys: { [bob.userId]: { BOB: algorithm } } });
        return { one_time_keys: { [bob.userId]: { BOB: bob.oneTimeKeys(1) } } };
      });
      const device_keys = { [bob.userId]: [], '@x:evil.test': [], '@y:nowhere.test': [] };
      const queryResponse = await call('POST', '/keys/query', { device_keys, timeout: 100_000 });
      const deviceKeys = queryResponse['device_keys'] as Record<string, JsonObject>;
      assert.deepEqual(Object.keys(deviceKeys[bob.userId]!), ['BOB']);
      assert.equal(deviceKeys[alice.userId], undefined);
      assert.deepEqual(Object.keys(queryResponse['failures'] as object).sort(), [
        'evil.test',
        'nowhere.test',
      ]);
      const one_time_keys = { [bob.userId]: { BOB: algorithm }, '@x:evil.test': { X: algorithm } };
      const claimResponse = await call('POST', '/keys/claim', { one_time_keys, timeout: 100_000 });
      const keys = claimResponse['one_time_keys'] as Record<string, JsonObject>;
      assert.deepEqual(Object.keys(keys), [bob.userId]);
      assert.deepEqual(Object.keys(claimResponse['failures'] as object), ['evil.test']);
    });

    it('delivers each received m.direct_to_device EDU once, even among malformed and forged EDUs', async () => {
      const message = (message_id: string, n: number): JsonObject => ({
        edu_type: 'm.direct_to_device',
        content: {
          sender: '@bob:b.test',
          type: 'm.test',
          message_id,
          messages: { [alice.userId]: { [alice.deviceId]: { n } } },
        },
      });
      const forged = {
        ...message('forged', 0),
        content: { ...(message('forged', 0)['content'] as JsonObject), sender: alice.userId },
      };
      const malformedEdus = ['m.direct_to_device', 'm.device_list_update', 'm.signing_key_update'].flatMap(
        (edu_type) =>
          [{}, { user_id: alice.userId, device_id: 'X', stream_id: 1 }, { messages: 5 }].map((content) => ({
            edu_type,
            content,
          })),
      );
      for (const [txn, edus] of [
        [message('one', 1), ...malformedEdus, message('two', 2), message('one', 1)],
        [message('two', 2), forged, message('three', 3)],
      ].entries()) {
        const body = { origin: 'b.test', origin_server_ts: 1, pdus: [], edus } as unknown as JsonObject;
        assert.equal((await sendRequest('PUT', `/send/txn${txn}`, body)).status, 200);
      }
      const { body } = await a.api('GET', '/_matrix/client/v3/sync', { token: alice.token });
      const { events } = body['to_device'] as { events: { sender: string; content: JsonObject }[] };
      assert.deepEqual(
        events.map(({ sender, content }) => [sender, content['n']]),
        [1, 2, 3].map((n) => ['@bob:b.test', n]),
      );
    });

    it('sends each to-device message to the remote server once, even when a client repeats the request', async () => {
      const received: JsonObject[] = [];
      b.on('PUT /_matrix/federation/v1/send/', ({ body }) => {
        const edus = body['edus'] as readonly { edu_type: string; content: JsonObject }[];
        received.push(
          ...edus.filter(({ edu_type }) => edu_type === 'm.direct_to_device').map(({ content }) => content),
        );
        return { pdus: {} };
      });
      const messages = { '@bob:b.test': { '*': { n: 1 } } };
      for (const txnId of ['x', 'x', 'y']) await call('PUT', `/sendToDevice/m.test/${txnId}`, { messages });
      await eventually('both to-device messages', () => received.length >= 2);
      assert.deepEqual(
        received.map(({ sender, type, messages }) => [sender, type, messages]),
        [1, 2].map(() => [alice.userId, 'm.test', messages]),
      );
      assert.equal(new Set(received.map(({ message_id }) => message_id)).size, 2);
    });
  });
});
