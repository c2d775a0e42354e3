import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { withSmallSteps } from '../../../test/support/databases/small-steps.ts';
import { codeOf, E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { ClientDevice, publicKey } from '../../../test/support/users/client-device.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { LocalStreams } from '../../kernel/streams/index.ts';
import { LocalKeyClaims } from './local-key-claims.ts';
import { keyCalls, oneTimeKeyAlgorithm } from './test/key-calls.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async () => {
    server = await E2eeServer.start(open);
  };
  const { upload, claim, keyCounts } = keyCalls(() => server);

  describe('one-time keys', () => {
    it('returns each one-time key to one claim, oldest key first, and then the fallback key', async () => {
      await start();
      const [alice, bob] = [await server.user('alice'), await server.user('bob')];
      const first = alice.client.oneTimeKeys(1, 50);
      const second = alice.client.oneTimeKeys(1, 10);
      const fallback = alice.client.oneTimeKeys(1, 99, { fallback: true });
      await upload(alice, { one_time_keys: first });
      const { body } = await upload(alice, { one_time_keys: second, fallback_keys: fallback });
      assert.deepEqual(body, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 2 } });
      assert.deepEqual(await claim(bob, alice), first);
      assert.deepEqual(await claim(bob, alice), second);
      assert.deepEqual(await keyCounts(alice), {
        counts: { [oneTimeKeyAlgorithm]: 0 },
        unused: [oneTimeKeyAlgorithm],
      });
      assert.deepEqual(await claim(bob, alice), fallback);
      assert.deepEqual(await claim(bob, alice), fallback);
      assert.deepEqual(await keyCounts(alice), { counts: { [oneTimeKeyAlgorithm]: 0 }, unused: [] });
      assert.equal(await claim(bob, alice, 'other'), undefined);
    });

    it('stores the 100 keys of each of 60 simultaneous uploads when only 20 ids at a time are reserved on disk', async () => {
      server = await withSmallSteps(20, () => E2eeServer.start(open));
      const users = await Promise.all(
        Array.from({ length: 60 }, (_, number) => server.user(`user${number}`)),
      );
      const uploads = await Promise.all(
        users.map((user) => upload(user, { one_time_keys: user.client.oneTimeKeys(100, 0) })),
      );
      assert.deepEqual(
        uploads.map(({ status, body }) => [status, body]),
        users.map(() => [200, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 100 } }]),
      );
    });

    it('returns each one-time key to only one of 1,000 parallel claims', async () => {
      await start();
      const alice = await server.user('alice');
      for (let n = 0; n < 8; n++) {
        const { status } = await upload(alice, { one_time_keys: alice.client.oneTimeKeys(100, n * 100) });
        assert.equal(status, 200);
      }
      const { claiming } = server.e2ee;
      const requests = new Map([[alice.userId, new Map([[alice.deviceId, oneTimeKeyAlgorithm]])]]);
      const claimed = await Promise.all(Array.from({ length: 1000 }, () => claiming.claim(requests, 0)));
      const names = claimed
        .map(({ one_time_keys }) => one_time_keys[alice.userId]?.[alice.deviceId])
        .filter((key) => key !== undefined)
        .flatMap((key) => Object.keys(key));
      assert.equal(names.length, 800);
      assert.equal(new Set(names).size, 800);
      assert.deepEqual(await keyCounts(alice), { counts: { [oneTimeKeyAlgorithm]: 0 }, unused: [] });
    });

    if (open.kind === 'postgres')
      it('returns each one-time key only once when two processes claim keys', async () => {
        await start();
        const alice = await server.user('alice');
        await upload(alice, { one_time_keys: alice.client.oneTimeKeys(200) });
        const { database, streams } = server.server;
        const other = await open.openAgain(database);
        const claims = [
          new LocalKeyClaims(database, streams, server.keyChanges.keyStream),
          new LocalKeyClaims(other, streams, server.keyChanges.keyStream),
        ];
        const request = { userId: alice.userId, deviceId: alice.deviceId, algorithm: oneTimeKeyAlgorithm };
        const keys = await Promise.all(Array.from({ length: 240 }, (_, n) => claims[n % 2]!.claim(request)));
        const ids = keys.filter((key) => key !== undefined).map(({ keyId }) => keyId);
        assert.equal(ids.length, 200);
        assert.equal(new Set(ids).size, 200);
      });

    it('does not return a claimed one-time key again after a restart', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(6) });
      const first = [await claim(alice, alice), await claim(alice, alice)];
      const database = await open.restart(server.server.database);
      const streams = await LocalStreams.open({ database, clock: server.server.clock, log: silentLogger });
      const claims = new LocalKeyClaims(database, streams, server.keyChanges.keyStream);
      const request = { userId: alice.userId, deviceId: alice.deviceId, algorithm: oneTimeKeyAlgorithm };
      const keysAfterRestart = await Promise.all(Array.from({ length: 6 }, () => claims.claim(request)));
      const names = keysAfterRestart
        .filter((key) => key !== undefined)
        .map(({ keyId }) => `${oneTimeKeyAlgorithm}:${keyId}`);
      assert.equal(new Set([...first.flatMap((key) => Object.keys(key!)), ...names]).size, 6);
      assert.equal(names.length, 4);
    });

    it('distinguishes devices and algorithms whose names are the same when they are concatenated', async () => {
      await start();
      const alice = await server.user('alice');
      const spaced = await server.uploadDeviceKeys(await server.server.login('alice', { device_id: 'A B' }));
      const short = await server.uploadDeviceKeys(await server.server.login('alice', { device_id: 'A' }));
      await upload(spaced, { one_time_keys: { 'C:1': 'of spaced' } });
      await upload(short, { one_time_keys: { 'B C:1': 'of short' } });
      const one_time_keys = { [alice.userId]: { 'A B': 'C', A: 'B C' } };
      const { body } = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.deepEqual(body['one_time_keys'], {
        [alice.userId]: { 'A B': { 'C:1': 'of spaced' }, A: { 'B C:1': 'of short' } },
      });
    });

    it('claims keys of many devices in one transaction', async () => {
      await start();
      const alice = await server.user('alice');
      const devices = [alice];
      for (let n = 0; n < 9; n++) devices.push(await server.device('alice'));
      for (const device of devices) await upload(device, { one_time_keys: device.client.oneTimeKeys(2) });
      const { transactions } = server.server.database.statistics;
      const requests = Object.fromEntries(devices.map(({ deviceId }) => [deviceId, oneTimeKeyAlgorithm]));
      const { body } = await server.call(alice, 'POST', '/keys/claim', {
        one_time_keys: { [alice.userId]: requests },
      });
      const claimed = (body['one_time_keys'] as Record<string, object>)[alice.userId]!;
      assert.deepEqual(Object.keys(claimed).sort(), Object.keys(requests).sort());
      assert.equal(server.server.database.statistics.transactions - transactions, 1);
    });

    it('accepts repeated uploads of the same keys, also of claimed keys, without storing them again', async () => {
      await start();
      const alice = await server.user('alice');
      const one_time_keys = alice.client.oneTimeKeys(2);
      await upload(alice, { one_time_keys });
      const claimed = await claim(alice, alice);
      for (let n = 0; n < 2; n++) {
        const { body } = await upload(alice, { one_time_keys });
        assert.deepEqual(body, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 1 } });
      }
      const next = await claim(alice, alice);
      assert.notDeepEqual(next, claimed);
      assert.equal(await claim(alice, alice), undefined);
    });

    it('answers 400 to a one-time key that has the id of a stored key but different content', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(2) });
      const answer = await upload(alice, { one_time_keys: alice.client.oneTimeKeys(2, 1) });
      assert.deepEqual(codeOf(answer), [400, 'M_INVALID_PARAM']);
      assert.deepEqual((await upload(alice, {})).body, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 2 } });
    });

    it('stores keys once when the same upload runs in parallel', async () => {
      await start();
      const alice = await server.user('alice');
      const one_time_keys = alice.client.oneTimeKeys(20);
      const answers = await Promise.all(Array.from({ length: 5 }, () => upload(alice, { one_time_keys })));
      for (const { body } of answers)
        assert.deepEqual(body, { one_time_key_counts: { [oneTimeKeyAlgorithm]: 20 } });
    });

    it('answers M_BAD_JSON to malformed one-time and fallback keys, M_TOO_LARGE to keys that are too large or too many, and accepts keys that lack a valid signature or are no Curve25519 keys', async () => {
      await start();
      const alice = await server.user('alice');
      const other = new ClientDevice(alice.userId, alice.deviceId);
      const key = publicKey();
      const cases: [keys: unknown, errcode: string][] = [
        [{ 'signed_curve25519:A': key }, 'M_BAD_JSON'],
        [{ 'signed_curve25519:A': { key: 5, signatures: {} } }, 'M_BAD_JSON'],
        [{ 'signed_curve25519:A': { key, signatures: 5 } }, 'M_BAD_JSON'],
        [{ 'curve25519:A': { key } }, 'M_BAD_JSON'],
        [{ 'other:A': 5 }, 'M_BAD_JSON'],
        [{ 'other:A': {} }, 'M_BAD_JSON'],
        [{ A: key }, 'M_BAD_JSON'],
        [{ ':A': key }, 'M_BAD_JSON'],
        [{ 'other:': key }, 'M_BAD_JSON'],
        [{ 'other:\0': key }, 'M_BAD_JSON'],
        [{ [`other:${'x'.repeat(300)}`]: key }, 'M_BAD_JSON'],
        [{ 'other:A': 'x'.repeat(5_000) }, 'M_TOO_LARGE'],
        [Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`other:${n}`, key])), 'M_TOO_LARGE'],
      ];
      for (const [one_time_keys, code] of cases) {
        assert.equal((await upload(alice, { one_time_keys })).body['errcode'], code);
        assert.equal((await upload(alice, { fallback_keys: one_time_keys })).body['errcode'], code);
      }
      const twoKeys = alice.client.oneTimeKeys(2);
      assert.deepEqual(codeOf(await upload(alice, { fallback_keys: twoKeys })), [400, 'M_BAD_JSON']);
      assert.deepEqual(await keyCounts(alice), { counts: { [oneTimeKeyAlgorithm]: 0 }, unused: [] });
      for (const keys of [other.oneTimeKeys(1), { 'signed_curve25519:A': { key } }]) {
        assert.equal((await upload(alice, { one_time_keys: keys, fallback_keys: keys })).status, 200);
      }
      const unusable = { 'signed_curve25519:B': { key: 'short' }, 'curve25519:C': 'not base64' };
      assert.equal((await upload(alice, { one_time_keys: unusable, fallback_keys: unusable })).status, 200);
      assert.deepEqual((await keyCounts(alice)).counts, { [oneTimeKeyAlgorithm]: 3, curve25519: 1 });
    });

    it('rejects more than 1,000 unclaimed keys of a device with 413 M_TOO_LARGE, and keeps the last 1,000 claimed keys', async () => {
      await start();
      const alice = await server.user('alice');
      const keysFrom = (first: number) => {
        const key = alice.client.key.publicKey.base64;
        return Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`curve25519:${first + n}`, key]));
      };
      await upload(alice, { one_time_keys: keysFrom(0) });
      assert.deepEqual(codeOf(await upload(alice, { one_time_keys: keysFrom(700) })), [413, 'M_TOO_LARGE']);
      const { claiming } = server.e2ee;
      const requests = new Map([[alice.userId, new Map([[alice.deviceId, 'curve25519']])]]);
      for (let round = 1; round < 3; round++) {
        await Promise.all(Array.from({ length: 700 }, () => claiming.claimLocal(requests)));
        await upload(alice, { one_time_keys: keysFrom(700 * round) });
      }
      assert.equal(await server.rows('claimed_one_time_keys'), 1000);
    });
  });
});
