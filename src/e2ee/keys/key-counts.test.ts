import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { KeyCounts } from './key-counts.ts';
import { keyCalls, oneTimeKeyAlgorithm } from './test/key-calls.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    server = await E2eeServer.start(open);
  };
  const { upload, claim, keyCounts } = keyCalls(() => server);

  describe('key counts of a device', () => {
    it('returns counts from the cache, and publishes each change', async () => {
      await start();
      const alice = await server.user('alice');
      const facts: string[] = [];
      server.keyChanges.keyStream.subscribe(({ deviceId }) => facts.push(deviceId));
      await keyCounts(alice);
      const { reads } = server.server.database.statistics;
      await keyCounts(alice);
      assert.equal(server.server.database.statistics.reads, reads);
      await upload(alice, {});
      assert.deepEqual(facts, []);
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(1) });
      assert.deepEqual(facts, [alice.deviceId]);
      assert.deepEqual(await keyCounts(alice), { counts: { [oneTimeKeyAlgorithm]: 1 }, unused: [] });
      await claim(alice, alice);
      await claim(alice, alice);
      assert.deepEqual(facts, [alice.deviceId, alice.deviceId]);
    });

    it('removes the counts of a device with many invented algorithms from the cache when the counts of other devices need the space', async () => {
      await start();
      const { database, clock } = server.server;
      const { keyStream } = server.keyChanges;
      // With this cache factor, the cache is smaller than the counts of two of the devices.
      const counts = new KeyCounts(database, plainCaches(clock, 0.05), keyStream);
      const devices = [
        await server.user('alice'),
        await server.device('alice'),
        await server.device('alice'),
      ];
      for (const [first, device] of devices.entries()) {
        const names = Array.from({ length: 900 }, (_, index) => `${first}.${index}.${'x'.repeat(230)}:A`);
        await upload(device, { one_time_keys: Object.fromEntries(names.map((name) => [name, 'key'])) });
      }
      for (const { userId, deviceId } of [...devices, devices[0]!]) {
        const { reads } = database.statistics;
        await counts.get(userId, deviceId);
        assert.ok(database.statistics.reads > reads, 'the counts were not in the cache');
      }
    });

    it('deletes one-time and fallback keys together with their device', async () => {
      await start();
      const alice = await server.user('alice');
      const second = await server.device('alice');
      const fallback_keys = second.client.oneTimeKeys(1, 5);
      await upload(second, { one_time_keys: second.client.oneTimeKeys(2), fallback_keys });
      await claim(alice, second);
      await keyCounts(second);
      await server.call(second, 'POST', '/logout', {});
      assert.deepEqual(await keyCounts(second), { counts: { [oneTimeKeyAlgorithm]: 0 }, unused: [] });
      for (const table of ['one_time_keys', 'claimed_one_time_keys', 'fallback_keys']) {
        assert.equal(await server.rows(table), 0);
      }
      assert.equal(await server.rows('device_keys'), 1);
      await assert.rejects(server.e2ee.upload.upload(second.userId, second.deviceId, {}), /was deleted/);
    });
  });
});
