import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { keyCalls, oneTimeKeyAlgorithm } from './test/key-calls.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    server = await E2eeServer.start(open);
  };
  const { upload, claim, keyCounts } = keyCalls(() => server);

  describe('fallback keys', () => {
    it('accepts fallback keys under the unstable name of MSC2732', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { 'org.matrix.msc2732.fallback_keys': alice.client.oneTimeKeys(1) });
      assert.deepEqual((await keyCounts(alice)).unused, [oneTimeKeyAlgorithm]);
    });

    it('rejects more than 20 fallback keys of a device with 413 M_TOO_LARGE, in one upload and in several', async () => {
      await start();
      const alice = await server.user('alice');
      const keys = (first: number, count: number) =>
        Object.fromEntries(
          Array.from({ length: count }, (_, index) => [`org.example.a${first + index}:A`, 'key']),
        );
      const uploaded = async (fallback_keys: object) => {
        const { status, body } = await upload(alice, { fallback_keys });
        return [status, body['errcode']];
      };
      const tooLarge = [413, 'M_TOO_LARGE'];
      assert.deepEqual(await uploaded(keys(0, 21)), tooLarge);
      assert.deepEqual(await uploaded(keys(0, 20)), [200, undefined]);
      assert.deepEqual(await uploaded(keys(20, 1)), tooLarge);
      assert.deepEqual(await uploaded(keys(19, 1)), [200, undefined]);
      assert.equal(await server.rows('fallback_keys'), 20);
    });

    it('keeps a claimed fallback key marked as used until another fallback key replaces it', async () => {
      await start();
      const alice = await server.user('alice');
      const fallback_keys = alice.client.oneTimeKeys(1);
      await upload(alice, { fallback_keys });
      await claim(alice, alice);
      await upload(alice, { fallback_keys });
      assert.deepEqual((await keyCounts(alice)).unused, []);
      await upload(alice, { fallback_keys: alice.client.oneTimeKeys(1, 1) });
      assert.deepEqual((await keyCounts(alice)).unused, [oneTimeKeyAlgorithm]);
      assert.equal(await server.rows('fallback_keys'), 1);
    });
  });
});
