import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../../src/protocol/index.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer, type TestUser } from '../support/servers/server.ts';
import { ClientDevice } from '../support/users/client-device.ts';

const algorithm = 'signed_curve25519';
const slidingSync = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync';

/** The fields of a sync response about the one-time and fallback keys that a device has left. */
interface KeyCounts {
  readonly device_one_time_keys_count?: Readonly<Record<string, number>>;
  readonly device_unused_fallback_key_types?: readonly string[];
}

for (const database of selectedDatabases(import.meta.url)) {
  // A client that finds no key counts in a response concludes that its keys are used up, and uploads new ones
  // each time.
  describe(`key counts in every sync response, on ${database}`, () => {
    let server: TestServer;
    let alice: TestUser;
    let bob: TestUser;
    let client: ClientDevice;
    let since: string | undefined;
    let pos: string | undefined;
    before(async () => {
      server = await startTestServer({
        database,
        config: { presence: { presence: { enabled: false } } },
      });
      [alice, bob] = [await server.register('alice'), await server.register('bob')];
      client = new ClientDevice(alice.userId, alice.deviceId);
      await upload({ device_keys: client.deviceKeys() });
    });
    after(() => server.stop());

    async function call(user: TestUser, method: string, path: string, body?: unknown, query = {}) {
      const answer = await server.api(method, path, { token: user.token, query, ...(body ? { body } : {}) });
      assert.equal(answer.status, 200, `${method} ${path}: ${answer.raw}`);
      return answer.body;
    }
    const upload = (body: JsonObject) => call(alice, 'POST', '/_matrix/client/v3/keys/upload', body);
    async function claim(): Promise<JsonObject> {
      const one_time_keys = { [alice.userId]: { [alice.deviceId]: algorithm } };
      const answer = await call(bob, 'POST', '/_matrix/client/v3/keys/claim', { one_time_keys });
      const keys = (answer['one_time_keys'] as Record<string, Record<string, JsonObject>>)[alice.userId];
      return keys?.[alice.deviceId] ?? {};
    }
    const keyCountsIn = ({ device_one_time_keys_count, device_unused_fallback_key_types }: KeyCounts) => [
      device_one_time_keys_count,
      device_unused_fallback_key_types,
    ];

    /**
     * Asserts that classic and sliding syncs of every kind return these key counts.
     * @param keys number of one-time keys
     * @param unused algorithms of the unused fallback keys
     */
    async function assertKeyCounts(keys: number, unused: readonly string[]): Promise<void> {
      const expected = [{ [algorithm]: keys }, unused];
      const classic = async (query: Record<string, string>, what: string) => {
        const body = await call(alice, 'GET', '/_matrix/client/v3/sync', undefined, query);
        assert.deepEqual(keyCountsIn(body as KeyCounts), expected, what);
        return String(body['next_batch']);
      };
      since = await classic(since === undefined ? {} : { since }, 'sync with changes');
      since = await classic({ since }, 'sync without changes');
      since = await classic({ since, timeout: '50' }, 'sync that times out');
      await classic({ since, full_state: 'true' }, 'sync with full state');
      for (const what of ['sliding sync with changes', 'sliding sync without changes']) {
        const body = { extensions: { e2ee: { enabled: true }, to_device: { enabled: true } } };
        const query = { timeout: '0', ...(pos !== undefined && { pos }) };
        const answer = await call(alice, 'POST', slidingSync, body, query);
        const { e2ee } = answer['extensions'] as { e2ee: KeyCounts };
        assert.deepEqual(keyCountsIn(e2ee), expected, what);
        pos = String(answer['pos']);
      }
    }

    it('key counts are zero before one-time keys are uploaded', () => assertKeyCounts(0, []));

    it('key counts grow by the number of uploaded one-time keys', async () => {
      await upload({
        one_time_keys: client.oneTimeKeys(3),
        fallback_keys: client.oneTimeKeys(1, 90, { fallback: true }),
      });
      await assertKeyCounts(3, [algorithm]);
      await upload({ one_time_keys: client.oneTimeKeys(2, 10) });
      await assertKeyCounts(5, [algorithm]);
    });

    it('key counts fall by one with each claim, and a claim wakes a long poll', async () => {
      for (let remaining = 4; remaining >= 0; remaining--) {
        const query = { since: since!, timeout: '20000' };
        const waiting = call(alice, 'GET', '/_matrix/client/v3/sync', undefined, query);
        await claim();
        const response = (await waiting) as unknown as KeyCounts & { next_batch: string };
        assert.deepEqual(response.device_one_time_keys_count, { [algorithm]: remaining });
        since = response.next_batch;
        await assertKeyCounts(remaining, [algorithm]);
      }
    });

    it('key counts show no unused fallback key after it is claimed, and the next claim returns the same fallback key', async () => {
      const [name, key] = Object.entries(await claim())[0]!;
      assert.equal((key as JsonObject)['fallback'], true);
      await assertKeyCounts(0, []);
      assert.deepEqual(Object.keys(await claim()), [name], 'the fallback key must be returned again');
      await assertKeyCounts(0, []);
    });

    it('key counts are correct after a restart', async () => {
      await upload({
        one_time_keys: client.oneTimeKeys(2, 20),
        fallback_keys: client.oneTimeKeys(1, 91, { fallback: true }),
      });
      await claim();
      await server.restart();
      await assertKeyCounts(1, [algorithm]);
    });
  });
}
