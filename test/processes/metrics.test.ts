import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { startTestServer, type TestServer } from '../support/servers/server.ts';

const clientApi = '/_matrix/client/v3';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`metrics of a running server on ${database}`, () => {
    let server: TestServer;
    const localhost = { type: 'http' as const, port: 0, bind_addresses: ['127.0.0.1'] };
    let addresses: readonly string[] = [];
    before(async () => {
      server = await startTestServer({
        database,
        config: {
          observability: { enable_metrics: true },
          http: {
            listeners: [
              { ...localhost, resources: [{ names: ['client'] }] },
              { ...localhost, resources: [{ names: ['metrics'] }] },
            ],
          },
        },
        listening: (startedAddresses) => {
          addresses = startedAddresses;
        },
      });
    });
    after(() => server.stop());

    const scrape = async () => {
      const response = await fetch(`${addresses[1]}/metrics`);
      assert.equal(response.status, 200);
      return response.text();
    };
    /** Returns the value of a series, by its name with labels. */
    const seriesValue = (text: string, series: string) => {
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `));
      return line === undefined ? undefined : Number(line.slice(series.length + 1));
    };

    it('metrics have series for durations, waits, sizes, jobs, counts, open syncs, media, caches and the version', async () => {
      const { token } = await server.register('ann');
      await server.register('bob');
      const room = await server.api('POST', `${clientApi}/createRoom`, { token, body: {} });
      assert.equal(room.status, 200);
      await server.api('POST', '/_matrix/media/v3/upload', {
        token,
        body: Buffer.from('a picture'),
        headers: { 'content-type': 'text/plain' },
      });
      const { body } = await server.api('GET', `${clientApi}/sync`, { token });
      const stopping = new AbortController();
      const { signal } = stopping;
      /** Repeats the sync, because the first one may be answered at once with the user's own presence. */
      const sync = async (since: unknown): Promise<void> => {
        const url = `${server.baseUrl}${clientApi}/sync?timeout=60000&since=${encodeURIComponent(String(since))}`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal });
        const { next_batch: next } = (await response.json()) as { next_batch?: unknown };
        if (!signal.aborted) await sync(next);
      };
      const syncing = sync(body['next_batch']).catch(() => undefined);
      const text = await eventually('an open sync', async () => {
        const scraped = await scrape();
        return seriesValue(scraped, 'server_http_open_requests{kind="sync"}') === 1 ? scraped : undefined;
      });
      const expected: readonly (readonly [string, (value: number) => boolean])[] = [
        ['server_database_query_duration_seconds_count{purpose="read"}', (n) => n > 0],
        ['server_database_query_duration_seconds_count{purpose="write"}', (n) => n > 0],
        ['server_database_query_duration_seconds_count{purpose="scan"}', (n) => n > 0],
        ['server_database_commit_duration_seconds_count', (n) => n > 0],
        ['server_database_pool_wait_seconds_count', (n) => n > 0],
        [
          `server_database_pool_connections{pool="${database === 'sqlite' ? 'writer' : 'main'}",state="waiting"}`,
          (n) => n >= 0,
        ],
        ['server_database_size_bytes', (n) => n > 100_000],
        ['server_database_wal_bytes', (n) => n >= 0],
        ...(database === 'sqlite'
          ? [['server_database_disk_free_bytes', (n: number) => n > 0] as const]
          : []),
        ['server_jobs_oldest_due_seconds', (n) => n >= 0],
        ['server_events_persisted_total{origin="local"}', (n) => n >= 6],
        ['server_events_persisted_total{origin="remote"}', (n) => n === 0],
        ['server_users{kind="user"}', (n) => n === 2],
        ['server_users{kind="deactivated"}', (n) => n === 0],
        ['server_rooms', (n) => n === 1],
        ['server_devices', (n) => n === 2],
        ['server_http_open_requests{kind="other"}', (n) => n >= 1],
        ['server_media_files{origin="local"}', (n) => n === 1],
        ['server_media_bytes{origin="local"}', (n) => n === 'a picture'.length],
        ['server_media_bytes{origin="remote"}', (n) => n === 0],
        ['server_media_disk_free_bytes', (n) => n > 0],
        ['server_cache_bytes{name="events"}', (n) => n >= 0],
        ['process_resident_memory_bytes', (n) => n > 0],
      ];
      for (const [series, holds] of expected) {
        const value = seriesValue(text, series);
        assert.ok(value !== undefined && holds(value), `${series} is ${value}`);
      }
      assert.match(text, /^server_build_info\{name="Hearth",version="\d+\.\d+\.\d+",node="24\.[^"]+"\} 1$/m);
      assert.match(text, /^server_http_request_duration_seconds_bucket\{le="300",[^}]*\} \d+$/m);
      stopping.abort();
      await syncing;
      await eventually(
        'no open sync',
        async () => seriesValue(await scrape(), 'server_http_open_requests{kind="sync"}') === 0,
      );
    });

    it('metrics have series for each cache: size, bytes, maximum bytes, hits and misses', async () => {
      const text = await scrape();
      const names = (metric: string) =>
        [...text.matchAll(new RegExp(`^${metric}\\{name="([^"]+)"\\}`, 'gm'))].map(([, name]) => name);
      const caches = names('server_cache_size');
      assert.ok(caches.length > 20, `${caches.length} caches`);
      for (const metric of [
        'server_cache_bytes',
        'server_cache_max_bytes',
        'server_cache_hits',
        'server_cache_misses',
      ]) {
        assert.deepEqual(names(metric).toSorted(), caches.toSorted(), metric);
      }
    });

    it('metrics are scraped repeatedly without a scan of the database for each scrape', async () => {
      const scans = (text: string) => seriesValue(text, 'server_database_statements_total{purpose="scan"}');
      await scrape();
      const scansBefore = scans(await scrape());
      for (let count = 0; count < 5; count += 1) await scrape();
      assert.equal(scans(await scrape()), scansBefore);
    });

    it('metrics have labels with few values: no user ids, room ids or IP addresses', async () => {
      const text = await scrape();
      assert.doesNotMatch(text, /@ann|@bob|!\w|127\.0\.0\.1/);
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      assert.ok(series.length < 5_000, `${series.length} series`);
    });
  });
}
