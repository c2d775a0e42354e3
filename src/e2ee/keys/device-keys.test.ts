import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { codeOf, E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { ClientDevice, publicKey } from '../../../test/support/users/client-device.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeTables } from '../tables.ts';
import { writeDeviceKeys } from './device-key-store.ts';
import { keyCalls, oneTimeKeyAlgorithm } from './test/key-calls.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    server = await E2eeServer.start(open);
  };
  const { upload, query, claim } = keyCalls(() => server);

  describe('device keys', () => {
    it('returns uploaded device keys to other users, with the display name of the device', async () => {
      await start();
      const [alice, bob] = [await server.user('alice'), await server.user('bob')];
      const { body } = await query(bob, { [alice.userId]: [] });
      const found = body['device_keys'] as Record<string, Record<string, JsonObject>>;
      assert.deepEqual(found, { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
      await server.call(alice, 'PUT', `/devices/${alice.deviceId}`, { display_name: 'Phone' });
      const withName = (await query(bob, { [alice.userId]: [alice.deviceId] })).body['device_keys'];
      assert.deepEqual(withName, {
        [alice.userId]: {
          [alice.deviceId]: { ...alice.deviceKeys, unsigned: { device_display_name: 'Phone' } },
        },
      });
      const missingKeys = (await query(bob, { [alice.userId]: ['OTHER'], '@unknown:test': [] })).body[
        'device_keys'
      ];
      assert.deepEqual(missingKeys, { [alice.userId]: {}, '@unknown:test': {} });
    });

    it('does not return stored keys of a device that does not exist', async () => {
      await start();
      const alice = await server.user('alice');
      const deletedDevice = new ClientDevice(alice.userId, 'DELETED');
      await server.server.database.transaction((writer) =>
        writeDeviceKeys(writer, alice.userId, 'DELETED', deletedDevice.deviceKeys()),
      );
      const { body } = await query(alice, { [alice.userId]: [] });
      assert.deepEqual(body['device_keys'], { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
    });

    it('leaves out a local user whose keys would make the response too large, and names this server in failures', async () => {
      await start();
      const alice = await server.user('alice');
      const bob = await server.user('bob');
      await server.server.database.transaction<E2eeTables, void>(async (writer) => {
        for (let device = 0; device < 600; device++)
          await writeDeviceKeys(writer, bob.userId, `B${device}`, { x: 'x'.repeat(15_000) });
      });
      const { body } = await query(alice, { [bob.userId]: [], [alice.userId]: [] });
      assert.deepEqual(body['device_keys'], { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
      const failures = body['failures'] as Record<string, { errcode: string }>;
      assert.deepEqual(
        Object.entries(failures).map(([name, { errcode }]) => [name, errcode]),
        [['test', 'M_LIMIT_EXCEEDED']],
      );
    });

    it('queryLocal returns display names with the device keys only when withNames is true', async () => {
      await start();
      const alice = await server.user('alice');
      await server.call(alice, 'PUT', `/devices/${alice.deviceId}`, { display_name: 'Phone' });
      const requested = new Map([[alice.userId, []]]);
      const unsignedOf = async (withNames: boolean) =>
        (await server.e2ee.query.queryLocal(requested, withNames)).device_keys[alice.userId]![alice.deviceId]!
          .unsigned;
      assert.equal(await unsignedOf(false), undefined);
      assert.deepEqual(await unsignedOf(true), { device_display_name: 'Phone' });
    });

    it('publishes a device list change for changed device keys, and none for a repeated identical upload', async () => {
      await start();
      const alice = await server.user('alice');
      const publishedUserIds: string[] = [];
      server.server.slice.devices.deviceListStream.subscribe(({ userId }) => publishedUserIds.push(userId));
      await upload(alice, { device_keys: alice.deviceKeys });
      assert.deepEqual(publishedUserIds, []);
      await upload(alice, { device_keys: alice.client.deviceKeys() });
      assert.deepEqual(publishedUserIds, [alice.userId]);
    });

    it('deletes the one-time and fallback keys of a device whose identity keys change', async () => {
      await start();
      const alice = await server.user('alice');
      const fallback_keys = alice.client.oneTimeKeys(1, 100);
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(3), fallback_keys });
      const { body } = await upload(alice, { device_keys: alice.client.deviceKeys() });
      assert.deepEqual(body, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 0 } });
      assert.equal(await claim(alice, alice), undefined);
    });

    it('answers 400 M_BAD_JSON to device keys that belong to another device or are malformed, and 413 M_TOO_LARGE to large device keys', async () => {
      await start();
      const alice = await server.user('alice');
      const { client } = alice;
      const otherDevice = new ClientDevice(alice.userId, 'OTHER');
      const valid = client.deviceKeys();
      const keys = valid['keys'] as Record<string, string>;
      const cases: [device_keys: JsonObject, errcode: string][] = [
        [client.deviceKeys({ user_id: '@bob:test' }), 'M_BAD_JSON'],
        [client.deviceKeys({ device_id: 'OTHER' }), 'M_BAD_JSON'],
        [otherDevice.deviceKeys(), 'M_BAD_JSON'],
        [client.deviceKeys({ keys: 'none' }), 'M_BAD_JSON'],
        [client.deviceKeys({ keys: { ...keys, 'other:key': 5 } }), 'M_BAD_JSON'],
        [client.deviceKeys({ algorithms: 'all' }), 'M_BAD_JSON'],
        [client.deviceKeys({ algorithms: [1] }), 'M_BAD_JSON'],
        [{ ...valid, signatures: 'mine' }, 'M_BAD_JSON'],
        [{ ...valid, signatures: { [alice.userId]: { 'ed25519:x': 5 } } }, 'M_BAD_JSON'],
        [client.deviceKeys({ padding: 'x'.repeat(20_000) }), 'M_TOO_LARGE'],
      ];
      for (const [device_keys, code] of cases) {
        const answer = await upload(alice, { device_keys });
        assert.deepEqual(codeOf(answer), [code === 'M_TOO_LARGE' ? 413 : 400, code]);
      }
      assert.deepEqual(codeOf(await upload(alice, { device_keys: [] })), [400, 'M_BAD_JSON']);
      const tooLarge = await upload(alice, { device_keys: { padding: 'x'.repeat(1_100_000) } });
      assert.deepEqual(codeOf(tooLarge), [413, 'M_TOO_LARGE']);
      const { body } = await query(alice, { [alice.userId]: [] });
      assert.deepEqual(body['device_keys'], { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
    });

    it('returns device keys as they were uploaded, also without algorithms and with names and values that no client can use', async () => {
      await start();
      const alice = await server.user('alice');
      const keys = { [`ed25519:${alice.deviceId}`]: 'short', 'curve25519:OTHER': 'not base64', other: 'key' };
      const device_keys = { ...alice.client.deviceKeys(), algorithms: [], keys };
      assert.equal((await upload(alice, { device_keys })).status, 200);
      const { body } = await query(alice, { [alice.userId]: [] });
      assert.deepEqual(body['device_keys'], { [alice.userId]: { [alice.deviceId]: device_keys } });
    });

    it('accepts device keys without a valid signature, and returns no signatures that were not uploaded', async () => {
      await start();
      const login = await server.server.register('unsigned', { device_id: 'DEVICE' });
      const client = new ClientDevice(login.userId, 'DEVICE');
      const user = { ...login, deviceId: 'DEVICE', client, deviceKeys: client.deviceKeys() };
      const { signatures, ...unsignedKeys } = client.deviceKeys();
      const otherSignatures = new ClientDevice(login.userId, 'DEVICE').deviceKeys().signatures!;
      const curveOnly = { keys: { 'curve25519:DEVICE': publicKey() } };
      for (const [sent, returned] of [
        [unsignedKeys, {}],
        [{ ...unsignedKeys, signatures: {}, algorithms: [] }, {}],
        [{ ...unsignedKeys, signatures: { [login.userId]: {} }, algorithms: ['a'] }, {}],
        [{ ...unsignedKeys, signatures: otherSignatures, algorithms: ['b'] }, otherSignatures],
        [{ ...unsignedKeys, ...curveOnly }, {}],
        [{ ...unsignedKeys, signatures }, signatures],
      ] as [JsonObject, JsonObject][]) {
        assert.equal((await upload(user, { device_keys: sent })).status, 200);
        const { body } = await query(user, { [login.userId]: [] });
        const found = (body['device_keys'] as Record<string, Record<string, JsonObject>>)[login.userId];
        assert.deepEqual(found, { DEVICE: { ...sent, signatures: returned } });
      }
    });

    it('accepts the device id __proto__', async () => {
      await start();
      const login = await server.server.register('alice', { device_id: '__proto__' });
      const alice = await server.uploadDeviceKeys(login);
      const { body } = await query(alice, { [alice.userId]: [] });
      const found = body['device_keys'] as Record<string, object>;
      assert.deepEqual(Object.keys(found[alice.userId]!), ['__proto__']);
    });
  });
});
