import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { ClientDevice, publicKey } from '../../../test/support/client-device.ts';
import { forEachDatabase } from '../../../test/support/databases.ts';
import { codeOf, E2eeServer, type KeyedPerson } from '../../../test/support/e2ee-server.ts';
import { Streams } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { writeDeviceKeys } from './device-key-store.ts';
import { KeyClaims } from './key-claims.ts';

const curve = 'signed_curve25519';

forEachDatabase((open) => {
  let server: E2eeServer;
  afterEach(() => server.stop());
  const start = async (
    ...more: Parameters<typeof E2eeServer.start> extends [unknown, ...infer R] ? R : never
  ) => {
    server = await E2eeServer.start(open, ...more);
  };
  const upload = (person: { token: string }, body: unknown) =>
    server.call(person, 'POST', '/keys/upload', body);
  const query = (person: { token: string }, device_keys: unknown) =>
    server.call(person, 'POST', '/keys/query', { device_keys });
  const claim = async (person: { token: string }, target: KeyedPerson, algorithm = curve) => {
    const one_time_keys = { [target.userId]: { [target.deviceId]: algorithm } };
    const { body } = await server.call(person, 'POST', '/keys/claim', { one_time_keys });
    const claimed = body['one_time_keys'] as Record<string, Record<string, JsonObject>>;
    return claimed[target.userId]?.[target.deviceId];
  };

  describe('device keys', () => {
    it('are found by those who ask, with the name of the device', async () => {
      await start();
      const [alice, bob] = [await server.user('alice'), await server.user('bob')];
      const { body } = await query(bob, { [alice.userId]: [] });
      const found = body['device_keys'] as Record<string, Record<string, JsonObject>>;
      assert.deepEqual(found, { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
      await server.call(alice, 'PUT', `/devices/${alice.deviceId}`, { display_name: 'Phone' });
      const named = (await query(bob, { [alice.userId]: [alice.deviceId] })).body['device_keys'];
      assert.deepEqual(named, {
        [alice.userId]: {
          [alice.deviceId]: { ...alice.deviceKeys, unsigned: { device_display_name: 'Phone' } },
        },
      });
      const others = (await query(bob, { [alice.userId]: ['OTHER'], '@nobody:test': [] })).body[
        'device_keys'
      ];
      assert.deepEqual(others, { [alice.userId]: {}, '@nobody:test': {} });
    });

    it('of a device that is gone are not found, whatever was left of it', async () => {
      await start();
      const alice = await server.user('alice');
      const ghost = new ClientDevice(alice.userId, 'GHOST');
      await server.server.database.transaction((writer) =>
        writeDeviceKeys(writer, alice.userId, 'GHOST', ghost.deviceKeys()),
      );
      const { body } = await query(alice, { [alice.userId]: [] });
      assert.deepEqual(body['device_keys'], { [alice.userId]: { [alice.deviceId]: alice.deviceKeys } });
    });

    it('are told to other servers without the names of devices, unless these may know', async () => {
      await start();
      const alice = await server.user('alice');
      await server.call(alice, 'PUT', `/devices/${alice.deviceId}`, { display_name: 'Phone' });
      const wanted = new Map([[alice.userId, []]]);
      const unsignedOf = async (withNames: boolean) =>
        (await server.e2ee.query.local(wanted, withNames)).device_keys[alice.userId]![alice.deviceId]!
          .unsigned;
      assert.equal(await unsignedOf(false), undefined);
      assert.deepEqual(await unsignedOf(true), { device_display_name: 'Phone' });
    });

    it('change the list of devices once, however often they are uploaded', async () => {
      await start();
      const alice = await server.user('alice');
      const facts: string[] = [];
      server.server.slice.devices.deviceListStream.subscribe(({ userId }) => facts.push(userId));
      await upload(alice, { device_keys: alice.deviceKeys });
      assert.deepEqual(facts, []);
      await upload(alice, { device_keys: alice.client.deviceKeys() });
      assert.deepEqual(facts, [alice.userId]);
    });

    it('with another identity leave no one-time key of the old one behind', async () => {
      await start();
      const alice = await server.user('alice');
      const fallback_keys = alice.client.oneTimeKeys(1, 100);
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(3), fallback_keys });
      const { body } = await upload(alice, { device_keys: alice.client.deviceKeys() });
      assert.deepEqual(body, { one_time_key_counts: { [curve]: 0 } });
      assert.equal(await claim(alice, alice), undefined);
    });

    it('are refused unless they are those of the device, signed by it', async () => {
      await start();
      const alice = await server.user('alice');
      const { client } = alice;
      const other = new ClientDevice(alice.userId, alice.deviceId);
      const foreign = new ClientDevice(alice.userId, 'OTHER');
      const valid = client.deviceKeys();
      const keys = valid['keys'] as Record<string, string>;
      const cases: [JsonObject, string][] = [
        [client.deviceKeys({ user_id: '@bob:test' }), 'M_INVALID_PARAM'],
        [client.deviceKeys({ device_id: 'OTHER' }), 'M_INVALID_PARAM'],
        [foreign.deviceKeys(), 'M_INVALID_PARAM'],
        [client.deviceKeys({ keys: {} }), 'M_INVALID_PARAM'],
        [client.deviceKeys({ keys: 'none' }), 'M_INVALID_PARAM'],
        [client.deviceKeys({ keys: { ...keys, 'ed25519:OTHER': publicKey() } }), 'M_INVALID_PARAM'],
        [client.deviceKeys({ keys: { ...keys, [`ed25519:${alice.deviceId}`]: 'AAAA' } }), 'M_INVALID_PARAM'],
        [
          client.deviceKeys({ keys: { [`ed25519:${alice.deviceId}`]: client.key.publicKey.base64 } }),
          'M_INVALID_PARAM',
        ],
        [client.deviceKeys({ algorithms: 'all' }), 'M_INVALID_PARAM'],
        [client.deviceKeys({ algorithms: [1] }), 'M_INVALID_PARAM'],
        [{ ...valid, algorithms: [] }, 'M_INVALID_SIGNATURE'],
        [{ ...valid, signatures: other.deviceKeys().signatures! }, 'M_INVALID_SIGNATURE'],
        [{ ...valid, signatures: { '@bob:test': {} } }, 'M_INVALID_SIGNATURE'],
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

    it('keep their names and ids whatever these are', async () => {
      await start();
      const login = await server.server.register('alice', { device_id: '__proto__' });
      const alice = await server.keyed(login);
      const { body } = await query(alice, { [alice.userId]: [] });
      const found = body['device_keys'] as Record<string, object>;
      assert.deepEqual(Object.keys(found[alice.userId]!), ['__proto__']);
    });
  });

  describe('one-time keys', () => {
    it('are handed out once each, oldest first, and then the fallback key', async () => {
      await start();
      const [alice, bob] = [await server.user('alice'), await server.user('bob')];
      const first = alice.client.oneTimeKeys(1, 50);
      const second = alice.client.oneTimeKeys(1, 10);
      const fallback = alice.client.oneTimeKeys(1, 99, { fallback: true });
      await upload(alice, { one_time_keys: first });
      const { body } = await upload(alice, { one_time_keys: second, fallback_keys: fallback });
      assert.deepEqual(body, { one_time_key_counts: { [curve]: 2 } });
      assert.deepEqual(await claim(bob, alice), first);
      assert.deepEqual(await claim(bob, alice), second);
      assert.deepEqual(await supply(alice), { counts: { [curve]: 0 }, unused: [curve] });
      assert.deepEqual(await claim(bob, alice), fallback);
      assert.deepEqual(await claim(bob, alice), fallback);
      assert.deepEqual(await supply(alice), { counts: { [curve]: 0 }, unused: [] });
      assert.equal(await claim(bob, alice, 'other'), undefined);
    });

    it('1,000 parallel claims never hand one out twice', async () => {
      await start();
      const alice = await server.user('alice');
      for (let n = 0; n < 8; n++) {
        const { status } = await upload(alice, { one_time_keys: alice.client.oneTimeKeys(100, n * 100) });
        assert.equal(status, 200);
      }
      const { claiming } = server.e2ee;
      const wishes = new Map([[alice.userId, new Map([[alice.deviceId, curve]])]]);
      const claimed = await Promise.all(Array.from({ length: 1000 }, () => claiming.claim(wishes, 0)));
      const names = claimed
        .map(({ one_time_keys }) => one_time_keys[alice.userId]?.[alice.deviceId])
        .filter((key) => key !== undefined)
        .flatMap((key) => Object.keys(key));
      assert.equal(names.length, 800);
      assert.equal(new Set(names).size, 800);
      assert.deepEqual(await supply(alice), { counts: { [curve]: 0 }, unused: [] });
    });

    if (open.kind === 'postgres')
      it('are not handed out twice by two processes either', async () => {
        await start();
        const alice = await server.user('alice');
        await upload(alice, { one_time_keys: alice.client.oneTimeKeys(200) });
        const { database, streams } = server.server;
        const other = await open.another(database);
        const claims = [
          new KeyClaims(database, streams, server.upkeep.keyStream),
          new KeyClaims(other, streams, server.upkeep.keyStream),
        ];
        const wish = { userId: alice.userId, deviceId: alice.deviceId, algorithm: curve };
        const keys = await Promise.all(Array.from({ length: 240 }, (_, n) => claims[n % 2]!.claim(wish)));
        const ids = keys.filter((key) => key !== undefined).map(({ keyId }) => keyId);
        assert.equal(ids.length, 200);
        assert.equal(new Set(ids).size, 200);
      });

    it('are not handed out again after a restart', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(6) });
      const first = [await claim(alice, alice), await claim(alice, alice)];
      const database = await open.restart(server.server.database);
      const claims = new KeyClaims(database, await Streams.open(database), server.upkeep.keyStream);
      const wish = { userId: alice.userId, deviceId: alice.deviceId, algorithm: curve };
      const rest = await Promise.all(Array.from({ length: 6 }, () => claims.claim(wish)));
      const names = rest.filter((key) => key !== undefined).map(({ keyId }) => `${curve}:${keyId}`);
      assert.equal(new Set([...first.flatMap((key) => Object.keys(key!)), ...names]).size, 6);
      assert.equal(names.length, 4);
    });

    it('with names that look alike are not mixed up', async () => {
      await start();
      const alice = await server.user('alice');
      const spaced = await server.keyed(await server.server.login('alice', { device_id: 'A B' }));
      const short = await server.keyed(await server.server.login('alice', { device_id: 'A' }));
      await upload(spaced, { one_time_keys: { 'C:1': 'of spaced' } });
      await upload(short, { one_time_keys: { 'B C:1': 'of short' } });
      const one_time_keys = { [alice.userId]: { 'A B': 'C', A: 'B C' } };
      const { body } = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.deepEqual(body['one_time_keys'], {
        [alice.userId]: { 'A B': { 'C:1': 'of spaced' }, A: { 'B C:1': 'of short' } },
      });
    });

    it('of many devices are claimed in one transaction', async () => {
      await start();
      const alice = await server.user('alice');
      const devices = [alice];
      for (let n = 0; n < 9; n++) devices.push(await server.device('alice'));
      for (const device of devices) await upload(device, { one_time_keys: device.client.oneTimeKeys(2) });
      const { transactions } = server.server.database.statistics;
      const wishes = Object.fromEntries(devices.map(({ deviceId }) => [deviceId, curve]));
      const { body } = await server.call(alice, 'POST', '/keys/claim', {
        one_time_keys: { [alice.userId]: wishes },
      });
      const claimed = (body['one_time_keys'] as Record<string, object>)[alice.userId]!;
      assert.deepEqual(Object.keys(claimed).sort(), Object.keys(wishes).sort());
      assert.equal(server.server.database.statistics.transactions - transactions, 1);
    });

    it('that come again are taken once, also when they were claimed meanwhile', async () => {
      await start();
      const alice = await server.user('alice');
      const one_time_keys = alice.client.oneTimeKeys(2);
      await upload(alice, { one_time_keys });
      const claimed = await claim(alice, alice);
      for (let n = 0; n < 2; n++) {
        const { body } = await upload(alice, { one_time_keys });
        assert.deepEqual(body, { one_time_key_counts: { [curve]: 1 } });
      }
      const next = await claim(alice, alice);
      assert.notDeepEqual(next, claimed);
      assert.equal(await claim(alice, alice), undefined);
    });

    it('of the same id but another content are refused', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(2) });
      const answer = await upload(alice, { one_time_keys: alice.client.oneTimeKeys(2, 1) });
      assert.deepEqual(codeOf(answer), [400, 'M_INVALID_PARAM']);
      assert.deepEqual((await upload(alice, {})).body, { one_time_key_counts: { [curve]: 2 } });
    });

    it('uploaded twice at once are taken once', async () => {
      await start();
      const alice = await server.user('alice');
      const one_time_keys = alice.client.oneTimeKeys(20);
      const answers = await Promise.all(Array.from({ length: 5 }, () => upload(alice, { one_time_keys })));
      for (const { body } of answers) assert.deepEqual(body, { one_time_key_counts: { [curve]: 20 } });
    });

    it('are refused when they are malformed or not signed by the device', async () => {
      await start();
      const alice = await server.user('alice');
      const other = new ClientDevice(alice.userId, alice.deviceId);
      const key = publicKey();
      const cases: [unknown, string][] = [
        [other.oneTimeKeys(1), 'M_INVALID_SIGNATURE'],
        [{ 'signed_curve25519:A': { key, signatures: {} } }, 'M_INVALID_SIGNATURE'],
        [{ 'signed_curve25519:A': key }, 'M_INVALID_PARAM'],
        [{ 'signed_curve25519:A': { key: 'AAAA', signatures: {} } }, 'M_INVALID_PARAM'],
        [{ 'signed_curve25519:A': { key } }, 'M_INVALID_PARAM'],
        [{ 'curve25519:A': 'AAAA' }, 'M_INVALID_PARAM'],
        [{ 'other:A': 5 }, 'M_INVALID_PARAM'],
        [{ 'other:A': {} }, 'M_INVALID_PARAM'],
        [{ A: key }, 'M_INVALID_PARAM'],
        [{ ':A': key }, 'M_INVALID_PARAM'],
        [{ 'other:': key }, 'M_INVALID_PARAM'],
        [{ 'other:\0': key }, 'M_INVALID_PARAM'],
        [{ [`other:${'x'.repeat(300)}`]: key }, 'M_INVALID_PARAM'],
        [{ 'other:A': 'x'.repeat(5_000) }, 'M_TOO_LARGE'],
        [Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`other:${n}`, key])), 'M_TOO_LARGE'],
      ];
      for (const [one_time_keys, code] of cases) {
        assert.equal((await upload(alice, { one_time_keys })).body['errcode'], code);
        assert.equal(
          (await upload(alice, { fallback_keys: one_time_keys })).body['errcode'],
          Object.keys(one_time_keys as object).length > 1000 ? 'M_INVALID_PARAM' : code,
        );
      }
      const two = alice.client.oneTimeKeys(2);
      assert.deepEqual(codeOf(await upload(alice, { fallback_keys: two })), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await supply(alice), { counts: { [curve]: 0 }, unused: [] });
    });

    it('do not pile up: neither those that wait nor the memory of those that are gone', async () => {
      await start();
      const alice = await server.user('alice');
      const some = (first: number) => {
        const names = Array.from({ length: 700 }, (_, n) => [`curve25519:${first + n}`, alice.client.key]);
        return Object.fromEntries(names.map(([name]) => [name, alice.client.key.publicKey.base64]));
      };
      await upload(alice, { one_time_keys: some(0) });
      assert.deepEqual(codeOf(await upload(alice, { one_time_keys: some(700) })), [413, 'M_TOO_LARGE']);
      const { claiming } = server.e2ee;
      const wishes = new Map([[alice.userId, new Map([[alice.deviceId, 'curve25519']])]]);
      for (let round = 1; round < 3; round++) {
        await Promise.all(Array.from({ length: 700 }, () => claiming.local(wishes)));
        await upload(alice, { one_time_keys: some(700 * round) });
      }
      assert.equal(await server.rows('claimed_one_time_keys'), 1000);
    });
  });

  describe('fallback keys', () => {
    it('are known by their old name too', async () => {
      await start();
      const alice = await server.user('alice');
      await upload(alice, { 'org.matrix.msc2732.fallback_keys': alice.client.oneTimeKeys(1) });
      assert.deepEqual((await supply(alice)).unused, [curve]);
    });

    it('are used until they are replaced by another one', async () => {
      await start();
      const alice = await server.user('alice');
      const fallback_keys = alice.client.oneTimeKeys(1);
      await upload(alice, { fallback_keys });
      await claim(alice, alice);
      await upload(alice, { fallback_keys });
      assert.deepEqual((await supply(alice)).unused, []);
      await upload(alice, { fallback_keys: alice.client.oneTimeKeys(1, 1) });
      assert.deepEqual((await supply(alice)).unused, [curve]);
      assert.equal(await server.rows('fallback_keys'), 1);
    });
  });

  describe('what a device is told of its keys', () => {
    it('comes from memory, and announces each change', async () => {
      await start();
      const alice = await server.user('alice');
      const facts: string[] = [];
      server.upkeep.keyStream.subscribe(({ deviceId }) => facts.push(deviceId));
      await supply(alice);
      const { reads } = server.server.database.statistics;
      await supply(alice);
      assert.equal(server.server.database.statistics.reads, reads);
      await upload(alice, {});
      assert.deepEqual(facts, []);
      await upload(alice, { one_time_keys: alice.client.oneTimeKeys(1) });
      assert.deepEqual(facts, [alice.deviceId]);
      assert.deepEqual(await supply(alice), { counts: { [curve]: 1 }, unused: [] });
      await claim(alice, alice);
      await claim(alice, alice);
      assert.deepEqual(facts, [alice.deviceId, alice.deviceId]);
    });

    it('goes with the device', async () => {
      await start();
      const [alice, second] = [await server.user('alice'), await server.device('alice')];
      const fallback_keys = second.client.oneTimeKeys(1, 5);
      await upload(second, { one_time_keys: second.client.oneTimeKeys(2), fallback_keys });
      await claim(alice, second);
      await supply(second);
      await server.call(second, 'POST', '/logout', {});
      assert.deepEqual(await supply(second), { counts: { [curve]: 0 }, unused: [] });
      for (const table of ['one_time_keys', 'claimed_one_time_keys', 'fallback_keys']) {
        assert.equal(await server.rows(table), 0);
      }
      assert.equal(await server.rows('device_keys'), 1);
      await assert.rejects(server.e2ee.upload.upload(second.userId, second.deviceId, {}), /gone/);
    });
  });

  describe('keys of other servers', () => {
    it('without federation are answered for as unreachable', async () => {
      await start();
      const alice = await server.user('alice');
      const { body } = await query(alice, { '@bob:elsewhere': [], [alice.userId]: [] });
      assert.deepEqual(Object.keys(body['failures'] as object), ['elsewhere']);
      assert.deepEqual(Object.keys(body['device_keys'] as object), [alice.userId]);
      const one_time_keys = { '@bob:elsewhere': { BOB: curve } };
      const claimed = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
      assert.deepEqual(Object.keys(claimed.body['failures'] as object), ['elsewhere']);
    });

    it('are taken as far as they are sound, and do not stop others', async () => {
      const bob = new ClientDevice('@bob:elsewhere', 'BOB');
      const keys = bob.deviceKeys();
      const otk = bob.oneTimeKeys(2);
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
            return { one_time_keys: { '@bob:elsewhere': { BOB: otk, EVE: otk }, '@alice:test': { A: otk } } };
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
      assert.deepEqual(masters['@bob:elsewhere']!.signatures, { '@bob:elsewhere': {} });
      assert.deepEqual(body['self_signing_keys'], {});
      const claimed = await server.call(alice, 'POST', '/keys/claim', {
        one_time_keys: { '@bob:elsewhere': { BOB: curve }, '@y:broken': { Y: curve } },
      });
      assert.deepEqual(claimed.body['one_time_keys'], {
        '@bob:elsewhere': { BOB: Object.fromEntries(Object.entries(otk).slice(0, 1)) },
      });
    });
  });

  it('refuses queries and claims that are malformed', async () => {
    await start();
    const alice = await server.user('alice');
    for (const device_keys of [undefined, [], { alice: [] }, { '@a:test': 'x' }, { '@a\0:test': [] }]) {
      assert.equal((await query(alice, device_keys)).status, 400);
    }
    for (const one_time_keys of [undefined, { '@a:test': [] }, { '@a:test': { A: 5 } }, { a: {} }]) {
      assert.equal((await server.call(alice, 'POST', '/keys/claim', { one_time_keys })).status, 400);
    }
    const one_time_keys = { [alice.userId]: { 'A\0': curve, [alice.deviceId]: 'a\0' } };
    const answer = await server.call(alice, 'POST', '/keys/claim', { one_time_keys });
    assert.deepEqual(answer.body, { one_time_keys: {}, failures: {} });
  });

  const supply = async ({ userId, deviceId }: KeyedPerson) => {
    const { oneTimeKeyCounts, unusedFallbackKeyTypes } = await server.e2ee.counts.supply(userId, deviceId);
    return { counts: oneTimeKeyCounts, unused: unusedFallbackKeyTypes };
  };
});
