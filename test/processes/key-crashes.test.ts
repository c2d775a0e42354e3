import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from '../../src/protocol/index.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { forSelectedDatabases, makeTestDatabase, type TestDatabase } from '../support/databases/databases.ts';
import { ClientDevice } from '../support/users/client-device.ts';
import { ApiClient, ApiError } from './crash/api-client.ts';

const curve = 'signed_curve25519';

/** Number of uploaded one-time keys. */
const keyCount = 400;

/** Number of parallel claimers. */
const claimers = 120;

/** Number of keys that each claimer claims. */
const claimsEach = 4;

const claims = claimers * claimsEach;

/** Number of users who send to-device messages. */
const senders = 8;

/** Number of messages that each user sends. */
const messagesEach = 40;

/** Milliseconds before a request without a response is repeated. */
const retryDelay = 50;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('keys and to-device messages of a server that is killed', () => {
    let testDatabase: TestDatabase;
    let server: HearthProcess;
    let alice: ApiClient;
    let device: ClientDevice;
    before(async () => {
      testDatabase = await makeTestDatabase(kind);
      server = await HearthProcess.create(databaseOf(testDatabase));
      await server.start();
      alice = await ApiClient.register(server.url, 'alice');
      const { device_id: deviceId } = await alice.request<{ device_id: string }>('GET', '/account/whoami');
      device = new ClientDevice(alice.userId, deviceId);
      await alice.request('POST', '/keys/upload', { device_keys: device.deviceKeys() });
    });
    after(async () => {
      await server?.remove();
      await testDatabase?.remove();
    });

    /** Claims one key. @returns its name; `undefined` when none is left */
    async function claim(client: ApiClient): Promise<string | undefined> {
      const one_time_keys = { [device.userId]: { [device.deviceId]: curve } };
      const answer = await client.request<{
        one_time_keys: Record<string, Record<string, JsonObject> | undefined>;
      }>('POST', '/keys/claim', { one_time_keys });
      return Object.keys(answer.one_time_keys[device.userId]?.[device.deviceId] ?? {})[0];
    }

    it(`returns no one-time key twice in ${claims} concurrent claims during a kill and ${claims} claims afterwards`, async () => {
      for (let first = 0; first < keyCount; first += 100) {
        await alice.request('POST', '/keys/upload', { one_time_keys: device.oneTimeKeys(100, first) });
      }
      const claimed: string[] = [];
      let unanswered = 0;
      const claimAll = (onClaim: () => void) =>
        Promise.all(
          Array.from({ length: claimers }, async () => {
            for (let n = 0; n < claimsEach; n++) {
              try {
                const name = await claim(alice);
                if (name !== undefined) claimed.push(name);
                onClaim();
              } catch (error) {
                assert.ok(!(error instanceof ApiError), String(error));
                unanswered++;
              }
            }
          }),
        );
      let killing: Promise<void> | undefined;
      await claimAll(() => {
        if (claimed.length >= 100) killing ??= server.kill();
      });
      await killing;
      assert.ok(unanswered > 0, 'the server must have been killed while keys were claimed');
      const unansweredBefore = unanswered;
      await server.start();
      await claimAll(() => {});
      assert.equal(unanswered, unansweredBefore);
      assert.equal(new Set(claimed).size, claimed.length);
      assert.ok(claimed.length <= keyCount && claimed.length >= keyCount - unanswered, `${claimed.length}`);
      assert.equal(await claim(alice), undefined);
    });

    it('delivers each to-device message of concurrent senders once and in the order of its sender, across kills and a stop', async () => {
      const clients = await Promise.all(
        Array.from({ length: senders }, (_, n) => ApiClient.register(server.url, `sender${n}`)),
      );
      const received = new Map<string, number[]>(clients.map(({ userId }) => [userId, []]));
      const count = () => [...received.values()].reduce((sum, { length }) => sum + length, 0);
      const send = async (client: ApiClient) => {
        for (let n = 0; n < messagesEach; n++) {
          const messages = { [device.userId]: { [device.deviceId]: { n } } };
          await retryUntilAnswered(() =>
            client.request('PUT', `/sendToDevice/m.room.encrypted/t${n}`, { messages }),
          );
        }
      };
      let since = '';
      const listen = async () => {
        while (count() < senders * messagesEach) {
          const query = `timeout=1000${since && `&since=${since}`}`;
          const answer = await retryUntilAnswered(() => alice.request<SyncAnswer>('GET', `/sync?${query}`));
          for (const { sender, content } of answer.to_device?.events ?? []) {
            received.get(sender)?.push(content.n);
          }
          since = answer.next_batch;
        }
      };
      const work = Promise.all([listen(), ...clients.map(send)]);
      for (const [index, endServer] of [
        () => server.kill(),
        () => server.stop(),
        () => server.kill(),
      ].entries()) {
        const enough = ((index + 1) * senders * messagesEach) / 5;
        while (count() < enough) await sleep(5);
        await endServer();
        await server.start();
      }
      await work;
      const lastSync = await retryUntilAnswered(() =>
        alice.request<SyncAnswer>('GET', `/sync?since=${since}`),
      );
      assert.deepEqual(lastSync.to_device?.events ?? [], []);
      const inOrder = Array.from({ length: messagesEach }, (_, n) => n);
      for (const [sender, numbers] of received) assert.deepEqual(numbers, inOrder, sender);
    });
  });
});

interface SyncAnswer {
  readonly next_batch: string;
  readonly to_device?: {
    readonly events: readonly { readonly sender: string; readonly content: { readonly n: number } }[];
  };
}

/** Repeats the request until the server responds. */
async function retryUntilAnswered<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) throw error;
      await sleep(retryDelay);
    }
  }
}

function databaseOf({ options }: TestDatabase): Record<string, unknown> {
  if (options.kind === 'sqlite') return { database: { name: 'sqlite3', args: { database: options.path } } };
  const { host, port, user, password, database } = options;
  return { database: { name: 'psycopg2', args: { host, port, user, password, dbname: database } } };
}
