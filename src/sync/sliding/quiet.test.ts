import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { SlidingClient } from '../../../test/support/users/sliding-client.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';

const body = {
  lists: { all: { ranges: [[0, 9]], timeline_limit: 10, required_state: [['m.room.name', '']] } },
  extensions: {
    to_device: { enabled: true },
    e2ee: { enabled: true },
    account_data: { enabled: true },
    receipts: { enabled: true },
    typing: { enabled: true },
  },
};

for (const database of selectedDatabases(import.meta.url)) {
  describe(`database statements of sliding sync, on ${database}`, () => {
    let server: TestServer;
    let anna: TestClient;
    before(async () => {
      const resources = [{ names: ['client' as const, 'metrics' as const] }];
      const listener = { port: 0, type: 'http' as const, bind_addresses: ['127.0.0.1'], resources };
      const config = { observability: { enable_metrics: true }, http: { listeners: [listener] } };
      server = await startTestServer({ database, config });
      anna = await TestClient.register(server, 'anna');
      await anna.createRoom();
    });
    after(() => server.stop());

    /** Returns the number of database statements of all kinds that the server has executed. */
    const statements = async () => {
      const { raw } = await server.api('GET', '/_synapse/metrics');
      const counts = [...raw.matchAll(/^server_database_statements_total\{[^}]*\} (\d+)$/gm)];
      assert.ok(counts.length > 0, raw);
      return counts.reduce((sum, [, number]) => sum + Number(number), 0);
    };

    /** Scrapes the metrics until a scrape executes no statement; the first scrapes query the values of some metrics. */
    const settledStatements = async () => {
      let [last, count] = [await statements(), await statements()];
      while (count !== last) [last, count] = [count, await statements()];
      return count;
    };

    it('executes no database statement for a long poll while nothing happens', async () => {
      const client = new SlidingClient(anna);
      await client.sync(body);
      await client.sync(body);
      const rounds = 10;
      const statementsOfSyncs = async () => {
        const before = await settledStatements();
        for (let index = 0; index < rounds; index++) {
          const { rooms, lists } = await client.sync(body, { timeout: 5 });
          assert.deepEqual([rooms, lists], [{}, { all: { count: 1 } }]);
        }
        return (await statements()) - before;
      };
      // Background jobs may execute statements during some attempts; syncs would execute them in each attempt.
      let count = rounds;
      for (let attempt = 0; attempt < 20 && count >= rounds / 2; attempt++) count = await statementsOfSyncs();
      assert.ok(count < rounds / 2, `${count} statements`);
    });
  });
}
