import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { codeOf, E2eeServer, type UserWithKeys } from '../../../test/support/servers/e2ee-server.ts';
import { ClientDevice, ClientIdentity } from '../../../test/support/users/client-device.ts';
import type { JsonObject } from '../../protocol/index.ts';

const prefix = '/_matrix/client/unstable/org.matrix.msc3814.v1/dehydrated_device';
const device_data = { algorithm: 'org.matrix.msc3814.v2', device_pickle: 'abc', nonce: 'def' };
const oneTimeKeyAlgorithm = 'signed_curve25519';
const day = 24 * 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  let alice: UserWithKeys;
  let dehydrated: ClientDevice;
  afterEach(() => server.stop());

  async function start(): Promise<void> {
    server = await E2eeServer.start(open);
    alice = await server.user('alice');
    dehydrated = new ClientDevice(alice.userId, 'DRY');
  }
  const call = (method: string, path = '', body?: unknown, as = alice) =>
    server.call(as, method, prefix + path, body);
  const bodyOf = (device: ClientDevice, changes: JsonObject = {}) => ({
    device_id: device.deviceId,
    device_data,
    initial_device_display_name: 'Dehydrated',
    device_keys: device.deviceKeys(),
    one_time_keys: device.oneTimeKeys(2),
    fallback_keys: device.oneTimeKeys(1, 9),
    ...changes,
  });
  const deviceIds = async () => {
    const { body } = await server.call(alice, 'GET', '/devices');
    return (body['devices'] as { device_id: string }[]).map(({ device_id }) => device_id).sort();
  };
  const send = (to: Record<string, object>, txn: string) =>
    server.call(alice, 'PUT', `/sendToDevice/m.x/${txn}`, { messages: { [alice.userId]: to } });

  describe('dehydrated devices', () => {
    it('stores a dehydrated device and returns its data and keys', async () => {
      await start();
      assert.deepEqual(codeOf(await call('GET')), [404, 'M_NOT_FOUND']);
      const identity = new ClientIdentity(alice.userId);
      await server.call(alice, 'POST', '/keys/device_signing/upload', identity.keys());
      const device_keys = identity.signAs(identity.selfSigning, dehydrated.deviceKeys({ dehydrated: true }));
      const body = bodyOf(dehydrated, { device_keys });
      assert.deepEqual((await call('PUT', '', body)).body, { device_id: 'DRY' });
      assert.deepEqual((await call('GET')).body, { device_id: 'DRY', device_data });
      const query = await server.call(alice, 'POST', '/keys/query', {
        device_keys: { [alice.userId]: ['DRY'] },
      });
      const unsigned = { device_display_name: 'Dehydrated' };
      assert.deepEqual(query.body['device_keys'], { [alice.userId]: { DRY: { ...device_keys, unsigned } } });
      const one_time_keys = { [alice.userId]: { DRY: oneTimeKeyAlgorithm } };
      const claimed = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.ok('DRY' in (claimed.body['one_time_keys'] as Record<string, object>)[alice.userId]!);
      assert.deepEqual(await deviceIds(), [alice.deviceId, 'DRY'].sort());
    });

    it('replaces the dehydrated device of a user, also by a device with the same id', async () => {
      await start();
      await call('PUT', '', bodyOf(dehydrated));
      await send({ '*': {} }, 'a');
      const next = new ClientDevice(alice.userId, 'NEXT');
      for (const device of [next, new ClientDevice(alice.userId, 'NEXT')]) {
        assert.equal((await call('PUT', '', bodyOf(device))).status, 200);
        assert.deepEqual(await deviceIds(), [alice.deviceId, 'NEXT'].sort());
        assert.equal(await server.rows('one_time_keys'), 2);
        assert.equal(await server.rows('dehydrated_devices'), 1);
        const { body } = await server.call(alice, 'POST', '/keys/query', {
          device_keys: { [alice.userId]: ['NEXT'] },
        });
        const found = body['device_keys'] as Record<string, Record<string, { keys: JsonObject }>>;
        assert.equal(found[alice.userId]?.['NEXT']?.keys['ed25519:NEXT'], device.key.publicKey.base64);
      }
      assert.equal(await server.rows('to_device_messages'), 1);
    });

    it('returns the to-device messages of a dehydrated device in batches, any number of times, and answers 403 to requests for other devices', async () => {
      await start();
      await call('PUT', '', bodyOf(dehydrated));
      const { streams } = server.server;
      await streams.write((writer, publish) =>
        server.queues.appendIn(
          writer,
          publish,
          Array.from({ length: 150 }, (_, n) => ({
            userId: alice.userId,
            deviceId: 'DRY',
            message: `{"content":{"n":${n}},"sender":"@bob:test","type":"m.x"}`,
          })),
        ),
      );
      for (let round = 0; round < 2; round++) {
        const batches: number[] = [];
        let next: unknown;
        do {
          const { body } = await call('POST', '/DRY/events', next === undefined ? {} : { next_batch: next });
          batches.push((body['events'] as unknown[]).length);
          next = body['next_batch'];
        } while (batches.at(-1)! > 0);
        assert.deepEqual(batches, [100, 50, 0]);
      }
      for (const [limit, expected] of [
        [1_000, [100, 50]],
        [75, [75, 75]],
      ] as const) {
        const batches: number[] = [];
        let from: unknown;
        do {
          const query = from === undefined ? '' : `&from=${from}`;
          const { body } = await call('GET', `/DRY/events?limit=${limit}${query}`);
          batches.push((body['events'] as unknown[]).length);
          from = body['next_batch'];
        } while (from !== undefined);
        assert.deepEqual(batches, expected);
      }
      assert.deepEqual(codeOf(await call('GET', `/${alice.deviceId}/events`)), [403, 'M_FORBIDDEN']);
      assert.deepEqual(codeOf(await call('POST', `/${alice.deviceId}/events`, {})), [403, 'M_FORBIDDEN']);
      const bob = await server.user('bob');
      assert.deepEqual(codeOf(await call('POST', '/DRY/events', {}, bob)), [403, 'M_FORBIDDEN']);
    });

    it('deletes a dehydrated device with its keys and messages', async () => {
      await start();
      assert.deepEqual(codeOf(await call('DELETE')), [404, 'M_NOT_FOUND']);
      await call('PUT', '', bodyOf(dehydrated));
      await send({ DRY: {} }, 'a');
      assert.deepEqual((await call('DELETE')).body, { device_id: 'DRY' });
      for (const table of ['dehydrated_devices', 'one_time_keys', 'fallback_keys', 'to_device_messages']) {
        assert.equal(await server.rows(table), 0);
      }
      assert.deepEqual(await deviceIds(), [alice.deviceId]);
    });

    it('keeps a dehydrated device when stale devices are deleted', async () => {
      await start();
      await call('PUT', '', bodyOf(dehydrated));
      const { clock, slice } = server.server;
      clock.advance(100 * day);
      assert.equal(await slice.devices.removeStale(clock.now() - day), 1);
      const names = await slice.devices.names([alice.userId]);
      assert.deepEqual([...names.get(alice.userId)!.keys()], ['DRY']);
    });

    it('rejects a dehydrated device that is incomplete, malformed or too large, or has the id of another device', async () => {
      await start();
      const cases: [body: JsonObject, status: number, errcode: string][] = [
        [bodyOf(alice.client), 403, 'M_FORBIDDEN'],
        [bodyOf(dehydrated, { device_id: 'OTHER' }), 400, 'M_BAD_JSON'],
        [bodyOf(dehydrated, { device_id: '' }), 400, 'M_INVALID_PARAM'],
        [bodyOf(dehydrated, { device_data: {} }), 400, 'M_INVALID_PARAM'],
        [bodyOf(dehydrated, { device_data: { ...device_data, x: 'x'.repeat(300_000) } }), 413, 'M_TOO_LARGE'],
        [bodyOf(dehydrated, { one_time_keys: { 'signed_curve25519:A': 5 } }), 400, 'M_BAD_JSON'],
        [{ device_id: 'DRY', device_data }, 400, 'M_BAD_JSON'],
      ];
      for (const [body, status, code] of cases) {
        assert.deepEqual(codeOf(await call('PUT', '', body)), [status, code]);
      }
      assert.deepEqual(await deviceIds(), [alice.deviceId]);
      assert.equal(await server.rows('dehydrated_devices'), 0);
    });
  });
});
