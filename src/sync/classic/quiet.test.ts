import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../test/support/users/test-client.ts';
import { FastPath } from './test/fast-path.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`database queries of GET /sync, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    let ben: TestClient;
    let roomId: string;
    let fastPath: FastPath;
    before(async () => {
      fastPath = new FastPath();
      server = await startTestServer({
        database,
        config: {
          observability: { enable_metrics: true },
          http: {
            listeners: [
              {
                port: 0,
                type: 'http',
                bind_addresses: ['127.0.0.1'],
                resources: [{ names: ['client', 'metrics'] }],
              },
            ],
          },
        },
      });
      [anna, ben] = [await TestClient.register(server, 'anna'), await TestClient.register(server, 'ben')];
      roomId = await anna.createRoom();
      await ben.join(roomId);
    });
    after(async () => {
      fastPath.stop();
      await server.stop();
    });

    /** Runs `work` three times. @returns the lowest number of reads, because reads of background jobs are counted, too */
    const fewestReads = async (work: () => Promise<void>) => {
      const counts: number[] = [];
      for (let time = 0; time < 3; time++) {
        const before = await reads();
        await work();
        counts.push((await reads()) - before);
      }
      return Math.min(...counts);
    };

    /** Returns the number of read statements so far. */
    const reads = async () => {
      const { raw } = await server.api('GET', '/_synapse/metrics');
      const counts = [
        ...raw.matchAll(/^server_database_statements_total\{purpose="(?:read|scan)"\} (\d+)$/gm),
      ];
      assert.equal(counts.length, 2, raw);
      return counts.reduce((sum, [, count]) => sum + Number(count), 0);
    };

    it('makes no database query for a sync without new data', async () => {
      let { next_batch } = await ben.sync();
      next_batch = (await ben.sync(next_batch)).next_batch;
      const queries = await fewestReads(async () => {
        for (let index = 0; index < 5; index++) {
          const sync = await ben.sync(next_batch, { timeout: 5 });
          assert.equal(sync.rooms, undefined);
          next_batch = sync.next_batch;
        }
      });
      assert.equal(queries, 0);
    });

    it('makes no database query for messages in an active room', async () => {
      let { next_batch } = await ben.sync();
      const exchange = async () => {
        await anna.say(roomId, 'hello');
        const sync = await ben.sync(next_batch, { timeout: 100_000 });
        assert.equal(sync.rooms?.join?.[roomId]?.timeline.events.length, 1);
        next_batch = sync.next_batch;
      };
      for (let index = 0; index < 3; index++) await exchange();
      const takenBefore = fastPath.taken;
      const queries = await fewestReads(async () => {
        for (let index = 0; index < 5; index++) await exchange();
      });
      assert.equal(queries, 0);
      assert.ok(
        fastPath.taken - takenBefore > 10,
        `${fastPath.taken - takenBefore} of 15 entries took the fast path`,
      );
    });

    it('a first sync makes the same number of database queries for 40 rooms in memory as for one room', async () => {
      const cleo = await TestClient.register(server, 'cleo-in-40-rooms');
      for (let index = 0; index < 40; index++) await cleo.createRoom();
      const firstSync = async () => {
        const { rooms } = await cleo.sync();
        assert.equal(Object.keys(rooms?.join ?? {}).length, 40);
      };
      await firstSync();
      const queriesOfOneRoom = await fewestReads(async () => void (await ben.sync()));
      const queries = await fewestReads(firstSync);
      assert.equal(queries, queriesOfOneRoom);
    });

    it('makes no database query for receipts and typing', async () => {
      const cleo = await TestClient.register(server, 'cleo');
      await cleo.join(roomId);
      const filter = { room: { state: { lazy_load_members: true }, timeline: { limit: 5 } } };
      let { next_batch } = await ben.sync(undefined, { filter });
      const next = async () => {
        const sync = await ben.sync(next_batch, { filter, timeout: 100_000 });
        next_batch = sync.next_batch;
        return sync.rooms?.join?.[roomId];
      };
      const types = (room: Awaited<ReturnType<typeof next>>) =>
        room?.ephemeral.events.map(({ type }) => type);
      const path = `/rooms/${enc(roomId)}`;
      const exchange = async () => {
        const messageId = await anna.say(roomId, 'hello');
        assert.equal((await next())?.timeline.events.length, 1);
        await cleo.do('POST', `${path}/receipt/m.read/${enc(messageId)}`, {});
        assert.deepEqual(types(await next()), ['m.receipt']);
        for (const typing of [true, false]) {
          await cleo.do('PUT', `${path}/typing/${enc(cleo.id)}`, { typing, timeout: 60_000 });
          assert.deepEqual(types(await next()), ['m.typing']);
        }
      };
      for (let index = 0; index < 3; index++) await exchange();
      const takenBefore = fastPath.taken;
      const queries = await fewestReads(async () => {
        for (let index = 0; index < 5; index++) await exchange();
      });
      assert.equal(queries, 0);
      assert.ok(
        fastPath.taken - takenBefore > 50,
        `${fastPath.taken - takenBefore} of 60 entries took the fast path`,
      );
    });
  });
}
