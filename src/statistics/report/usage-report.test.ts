import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { openContents } from '../../../test/support/databases/database-contents.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
} from '../../../test/support/servers/server.ts';
import { TestClient } from '../../../test/support/users/test-client.ts';
import { statisticsMigrations } from '../migrations.ts';
import { returningUsers } from './usage-figures.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

type Report = Readonly<Record<string, unknown>>;

/** A service that receives usage reports, directly or as a forward proxy. */
class Collector {
  readonly requests: { readonly request: IncomingMessage; readonly report: Report }[] = [];
  status = 200;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer(async (request, response) => {
      this.requests.push({ request, report: (await json(request)) as Report });
      response.writeHead(this.status).end('{}');
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => collector.#server.listen(0, '127.0.0.1', resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('returningUsers', () => {
    it('counts users who were active on two days at least 30 days apart in the last 60 days, by kind of client', async () => {
      const database = await open(statisticsMigrations);
      const today = 20_000;
      const visits = [
        ['@alice:test', 'android', today - 30],
        ['@alice:test', 'android', today],
        ['@alice:test', 'web', today - 29],
        ['@alice:test', 'web', today],
        ['@bob:test', 'ios', today - 45],
        ['@bob:test', 'web', today - 15],
        ['@carol:test', 'web', today - 60],
        ['@carol:test', 'web', today - 10],
      ].map(([user, client, visited]) => [visited!, user!, client!]);
      const sql = 'INSERT INTO user_visits (day, user_id, client) VALUES (?, ?, ?)';
      await database.batch([{ sql, rows: visits }]);
      const found = await returningUsers(database, today * 24 * hour);
      assert.deepEqual(Object.fromEntries(found), { all: 2, android: 1 });
    });
  });
});

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('usage statistics', () => {
    let collector: Collector;
    let server: TestServer;
    let clock: ManualClock;
    before(async () => {
      collector = await Collector.start();
    });
    after(() => collector.stop());
    beforeEach(() => collector.requests.splice(0));
    afterEach(() => server.stop());

    const start = async (observability: object, more: ConfigurationOverrides = {}) => {
      clock = manualClock();
      server = await startTestServer({
        database: kind,
        clock,
        config: {
          observability: { report_stats_endpoint: `${collector.url}/push`, ...observability },
          accounts: { allow_guest_access: true },
          ...more,
        },
      });
    };
    /** Waits for the report with this number, from 1. */
    const reportAt = (number: number) =>
      eventually(`report ${number}`, () => collector.requests[number - 1]?.report);

    it('reports usage statistics five minutes after the start and then every three hours, also after a refusal and a restart [option: report_stats, report_stats_endpoint, server_context]', async () => {
      await start({ report_stats: true, server_context: 'tests' });
      const alice = await TestClient.register(server, 'alice');
      await TestClient.register(server, 'bob');
      await server.api('POST', '/_matrix/client/v3/register', { query: { kind: 'guest' }, body: {} });
      const roomId = await alice.createRoom();
      await alice.say(roomId, 'one');
      await alice.say(roomId, 'two');
      await alice.send(roomId, 'm.room.encrypted', { algorithm: 'x', ciphertext: 'y' });
      clock.advance(5 * minute - second);
      assert.equal(collector.requests.length, 0);
      collector.status = 500;
      clock.advance(second);
      const {
        memory_rss,
        cpu_average,
        database_server_version,
        timestamp,
        log_level,
        cache_factor,
        event_cache_size,
        ...report
      } = await reportAt(1);
      const { method, url, headers } = collector.requests[0]!.request;
      assert.deepEqual([method, url, headers['content-type']], ['PUT', '/push', 'application/json']);
      assert.deepEqual(report, {
        homeserver: 'test',
        server_context: 'tests',
        uptime_seconds: 300,
        total_users: 3,
        total_nonbridged_users: 3,
        daily_user_type_native: 2,
        daily_user_type_guest: 1,
        daily_user_type_bridged: 0,
        total_room_count: 1,
        daily_active_users: 1,
        monthly_active_users: 1,
        daily_messages: 2,
        daily_sent_messages: 2,
        daily_e2ee_messages: 1,
        daily_sent_e2ee_messages: 1,
        daily_active_rooms: 1,
        daily_active_e2ee_rooms: 1,
        r30v2_users_all: 0,
        r30v2_users_android: 0,
        r30v2_users_ios: 0,
        r30v2_users_electron: 0,
        r30v2_users_web: 0,
        database_engine: kind === 'sqlite' ? 'sqlite3' : 'psycopg2',
      });
      assert.equal(timestamp, Math.floor(clock.now() / second));
      assert.match(String(database_server_version), /^\d+\.\d+/);
      for (const number of [memory_rss, cpu_average, cache_factor, event_cache_size])
        assert.ok(Number(number) >= 0);
      assert.equal(log_level, 'SILENT');

      collector.status = 200;
      clock.advance(3 * hour);
      assert.equal((await reportAt(2))['daily_messages'], 2);
      await server.restart();
      clock.advance(5 * minute);
      const third = await reportAt(3);
      assert.deepEqual([third['daily_messages'], third['uptime_seconds']], [2, 300]);
      const days = async () => {
        const contents = await openContents(server.databaseOptions);
        const rows = await contents.rows('statistics_days').finally(() => contents.close());
        return rows.toSorted((one, other) => Number(one['day']) - Number(other['day']));
      };
      await eventually('the figures of the second day', async () => (await days())[1]?.['users']);
      clock.advance(26 * hour);
      const late = (await eventually('later reports', () => collector.requests[10]))?.report;
      assert.deepEqual(
        [late?.['daily_messages'], late?.['daily_active_rooms'], late?.['daily_active_users']],
        [0, 0, 0],
      );
      assert.equal(late?.['monthly_active_users'], 1);
      const [{ active_users, messages, local_messages } = {}, { users, rooms, database_bytes } = {}] =
        await days();
      const figures = [active_users, messages, local_messages, users, rooms].map(Number);
      assert.deepEqual(figures, [1, 3, 3, 3, 1], 'the figures of the first two days are stored');
      assert.ok(Number(database_bytes) > 100_000);
    });

    it('sends usage reports through the proxy of the operator', async () => {
      const outbound = { http_proxy: collector.url } as never;
      await start({ report_stats: true, report_stats_endpoint: 'http://stats.example/push' }, { outbound });
      clock.advance(5 * minute);
      await reportAt(1);
      assert.match(collector.requests[0]?.request.url ?? '', /^http:\/\/stats\.example(:80)?\/push$/);
    });

    it('sends no usage reports by default', async () => {
      await start({});
      clock.advance(4 * hour);
      assert.equal(collector.requests.length, 0);
    });
  });
});
