import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { E2eeServer } from '../../../test/support/servers/e2ee-server.ts';
import { ClientDevice } from '../../../test/support/users/client-device.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { E2eeDeps } from '../index.ts';
import { keyCalls, oneTimeKeyAlgorithm } from '../keys/test/key-calls.ts';
import type { RemoteRequest } from './remote-keys.ts';

forSelectedDatabases(import.meta.url, (open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async (options?: Partial<E2eeDeps>) => {
    server = await E2eeServer.start(open, options);
  };
  const { query } = keyCalls(() => server);

  describe('keys of remote users', () => {
    it('reports other servers as failures when federation is off', async () => {
      await start();
      const alice = await server.user('alice');
      const { body } = await query(alice, { '@bob:elsewhere': [], [alice.userId]: [] });
      assert.deepEqual(Object.keys(body['failures'] as object), ['elsewhere']);
      assert.deepEqual(Object.keys(body['device_keys'] as object), [alice.userId]);
      const one_time_keys = { '@bob:elsewhere': { BOB: oneTimeKeyAlgorithm } };
      const claimed = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.deepEqual(Object.keys(claimed.body['failures'] as object), ['elsewhere']);
    });

    it('returns the valid keys of each server, and failures for the servers that do not answer', async () => {
      const bob = new ClientDevice('@bob:elsewhere', 'BOB');
      const keys = bob.deviceKeys();
      const oneTimeKeys = bob.oneTimeKeys(2);
      await start({
        remote: {
          query: async (name) => {
            if (name === 'broken') throw new Error('no route to host');
            if (name === 'odd') return { device_keys: [], master_keys: { '@x:odd': 5 } };
            const device_keys = {
              '@bob:elsewhere': { BOB: { ...keys, unsigned: { x: 1 } }, EVE: keys, NONE: 5 },
              '@alice:test': { FAKE: keys },
            };
            const master = { user_id: '@bob:elsewhere', usage: ['master'], keys: { 'ed25519:x': 'x' } };
            return {
              device_keys,
              master_keys: { '@bob:elsewhere': { ...master, signatures: { '@eve:evil': { a: 'b' } } } },
              self_signing_keys: { '@bob:elsewhere': master },
            };
          },
          claim: async (name) => {
            if (name === 'broken') throw new Error('no route to host');
            return {
              one_time_keys: {
                '@bob:elsewhere': { BOB: oneTimeKeys, EVE: oneTimeKeys },
                '@alice:test': { A: oneTimeKeys },
              },
            };
          },
          devices: async () => ({}),
        },
      });
      const alice = await server.user('alice');
      const { body } = await query(alice, {
        '@bob:elsewhere': [],
        '@x:odd': [],
        '@y:broken': [],
        [alice.userId]: [],
      });
      assert.deepEqual(body['device_keys'], {
        '@bob:elsewhere': { BOB: { ...keys, unsigned: {} } },
        [alice.userId]: { [alice.deviceId]: alice.deviceKeys },
      });
      assert.deepEqual(Object.keys(body['failures'] as object), ['broken']);
      const masters = body['master_keys'] as Record<string, JsonObject>;
      assert.deepEqual(masters['@bob:elsewhere']!.signatures, {});
      assert.deepEqual(body['self_signing_keys'], {});
      const claimed = await server.call(alice, 'POST', '/keys/claim', {
        one_time_keys: {
          '@bob:elsewhere': { BOB: oneTimeKeyAlgorithm },
          '@y:broken': { Y: oneTimeKeyAlgorithm },
        },
      });
      assert.deepEqual(claimed.body['one_time_keys'], {
        '@bob:elsewhere': { BOB: Object.fromEntries(Object.entries(oneTimeKeys).slice(0, 1)) },
      });
      assert.deepEqual(Object.keys(claimed.body['failures'] as object), ['broken']);
    });

    it('makes requests to at most 250 servers, at most 25 at a time, and reports the other servers as failures', async () => {
      let [running, maxRunning, total] = [0, 0, 0];
      const answer = async () => {
        total++;
        maxRunning = Math.max(maxRunning, ++running);
        for (let turns = 3; turns > 0; turns--) await new Promise(setImmediate);
        running--;
        return {};
      };
      await start({ remote: { query: answer, claim: answer, devices: async () => ({}) } });
      const alice = await server.user('alice');
      const ids = Array.from({ length: 1_500 }, (_, index) => `@user:s${index}.example`);
      const queried = await query(alice, Object.fromEntries(ids.map((userId) => [userId, []])));
      assert.ok(
        total === 250 && maxRunning > 1 && maxRunning <= 25,
        `${total} requests, ${maxRunning} at a time`,
      );
      const { failures } = queried.body as { failures: Record<string, JsonObject> };
      assert.equal(Object.keys(failures).length, 1_250);
      assert.equal(failures['s1499.example']?.errcode, 'M_LIMIT_EXCEEDED');
      [maxRunning, total] = [0, 0];
      const one_time_keys = Object.fromEntries(ids.map((userId) => [userId, { A: oneTimeKeyAlgorithm }]));
      const claimed = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.ok(
        total === 250 && maxRunning > 1 && maxRunning <= 25,
        `${total} requests, ${maxRunning} at a time`,
      );
      assert.equal(Object.keys(claimed.body['failures'] as object).length, 1_250);
    });
  });

  it('reports servers as failed when the responses of others have spent the budget of the request', async () => {
    const answer = async (_server: string, _users: unknown, { budget }: RemoteRequest) => {
      budget!.check();
      budget!.spendValues(30_000);
      return {};
    };
    await start({ remote: { query: answer, claim: answer, devices: async () => ({}) } });
    const alice = await server.user('alice');
    const ids = Array.from({ length: 10 }, (_, index) => `@user:s${index}.example`);
    const queried = await query(alice, Object.fromEntries(ids.map((userId) => [userId, []])));
    const codes = Object.values(queried.body['failures'] as Record<string, JsonObject>);
    assert.deepEqual(
      codes.map(({ errcode }) => errcode),
      Array(4).fill('M_LIMIT_EXCEEDED'),
    );
    const one_time_keys = Object.fromEntries(ids.map((userId) => [userId, { A: oneTimeKeyAlgorithm }]));
    const claimed = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
    assert.equal(Object.keys(claimed.body['failures'] as object).length, 4);
  });

  it('rejects malformed key queries and claims with 400, and returns no keys for device ids and algorithms with U+0000', async () => {
    await start();
    const alice = await server.user('alice');
    for (const device_keys of [undefined, [], { alice: [] }, { '@a:test': 'x' }, { '@a\0:test': [] }]) {
      assert.equal((await query(alice, device_keys)).status, 400);
    }
    for (const one_time_keys of [undefined, { '@a:test': [] }, { '@a:test': { A: 5 } }, { a: {} }]) {
      assert.equal((await server.call(alice, 'POST', '/keys/claim', { one_time_keys })).status, 400);
    }
    const one_time_keys = { [alice.userId]: { 'A\0': oneTimeKeyAlgorithm, [alice.deviceId]: 'a\0' } };
    const answer = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
    assert.deepEqual(answer.body, { one_time_keys: {}, failures: {} });
  });
});
