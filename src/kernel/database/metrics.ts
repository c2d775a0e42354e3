import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sql } from 'kysely';
import type { Clock } from '../clock.ts';
import type { Metrics } from '../observability/index.ts';
import { PeriodicReading } from '../observability/index.ts';
import type { Database } from './database.ts';
import type { PostgresOptions } from './postgres/options.ts';
import type { SqliteOptions } from './sqlite/sqlite-database.ts';
import type { DatabaseStatistics } from './statistics.ts';

/** Exposes the statistics of a database as metrics. */
export function reportStatistics(metrics: Metrics, statistics: Readonly<DatabaseStatistics>): void {
  metrics.counter({
    name: 'server_database_statements_total',
    help: 'Statements sent to the database, by purpose.',
    labelNames: ['purpose'],
    collect() {
      this.reset();
      this.inc({ purpose: 'read' }, statistics.reads);
      this.inc({ purpose: 'scan' }, statistics.scans);
      this.inc({ purpose: 'write' }, statistics.writes);
    },
  });
  metrics.counter({
    name: 'server_database_transactions_total',
    help: 'Transactions and batches, including retries.',
    labelNames: ['kind'],
    collect() {
      this.reset();
      this.inc({ kind: 'transaction' }, statistics.transactions);
      this.inc({ kind: 'batch' }, statistics.batches);
    },
  });
  metrics.counter({
    name: 'server_database_flushes_total',
    help: 'Commits that waited for the disk.',
    collect() {
      this.reset();
      this.inc(statistics.flushes);
    },
  });
  const counters = [
    ['released_bytes', 'Bytes of deleted rows that were released to the file system.', 'releasedBytes'],
    ['moved_rows', 'Rows that were moved so that space could be released, on PostgreSQL.', 'movedRows'],
  ] as const;
  for (const [name, help, counted] of counters)
    metrics.counter({
      name: `server_database_${name}_total`,
      help,
      collect() {
        this.reset();
        this.inc(statistics[counted]);
      },
    });
  reportDurations(metrics, statistics);
}

/** Upper bounds of the histogram's buckets in seconds: from a read of memory to a commit on a slow disk. */
const buckets = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

function reportDurations(metrics: Metrics, { timings }: Readonly<DatabaseStatistics>): void {
  const queries = metrics.histogram({
    name: 'server_database_query_duration_seconds',
    help: 'Time of a statement, by purpose.',
    labelNames: ['purpose'],
    buckets,
  });
  const commits = metrics.histogram({
    name: 'server_database_commit_duration_seconds',
    help: 'Time of a commit until it is on disk; one commit holds all transactions that are ready together.',
    buckets,
  });
  const waits = metrics.histogram({
    name: 'server_database_pool_wait_seconds',
    help: 'Time that work waits for a connection (PostgreSQL) or for the writer (SQLite).',
    buckets,
  });
  timings.observe = (part, milliseconds) => {
    const seconds = milliseconds / 1_000;
    if (part === 'commit') commits.observe(seconds);
    else if (part === 'wait') waits.observe(seconds);
    else queries.observe({ purpose: part }, seconds);
  };
  metrics.gauge({
    name: 'server_database_pool_connections',
    help: 'Connections of each pool by state, and tasks that wait for one. On SQLite, only the connection that writes.',
    labelNames: ['pool', 'state'],
    collect() {
      for (const [pool, { inUse, idle, waiting }] of Object.entries(timings.pools?.() ?? {})) {
        this.set({ pool, state: 'in_use' }, inUse);
        this.set({ pool, state: 'idle' }, idle);
        this.set({ pool, state: 'waiting' }, waiting);
      }
    },
  });
}

/** Milliseconds between two queries for the size of a PostgreSQL database. */
const sizeInterval = 60_000;

interface Sizes {
  readonly database?: number | undefined;
  readonly wal?: number | undefined;
  readonly free?: number | undefined;
}

/** Exposes the sizes of the database and its write-ahead log, and the free space of the disk of a SQLite file. */
export function reportSizes(
  metrics: Metrics,
  database: Database,
  options: Pick<SqliteOptions, 'kind' | 'path'> | Pick<PostgresOptions, 'kind'>,
  clock: Clock,
): void {
  const read = options.kind === 'sqlite' ? () => fileSizes(options.path) : () => serverSizes(database);
  const interval = options.kind === 'sqlite' ? 1_000 : sizeInterval;
  const sizes = new PeriodicReading<Sizes>(clock, interval, read);
  const gauge = (name: string, help: string, size: keyof Sizes) =>
    metrics.gauge({
      name,
      help,
      async collect() {
        const bytes = (await sizes.value())?.[size];
        if (bytes === undefined) this.remove();
        else this.set(bytes);
      },
    });
  gauge('server_database_size_bytes', 'Bytes of the database.', 'database');
  gauge('server_database_wal_bytes', 'Bytes of the write-ahead log, where the server may read it.', 'wal');
  gauge('server_database_disk_free_bytes', 'Free bytes of the disk of a SQLite database.', 'free');
}

async function fileSizes(path: string): Promise<Sizes> {
  const bytes = (file: string) =>
    stat(file).then(
      ({ size }) => size,
      () => undefined,
    );
  const disk = await statfs(dirname(path)).catch(() => undefined);
  return {
    database: await bytes(path),
    wal: (await bytes(`${path}-wal`)) ?? 0,
    free: disk && disk.bavail * disk.bsize,
  };
}

async function serverSizes(database: Database): Promise<Sizes> {
  const size = sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`;
  // Only users with the role pg_monitor may list the files of the log.
  const wal = sql<{ bytes: number }>`select sum(size)::bigint as bytes from pg_ls_waldir()`;
  return {
    database: (await size.execute(database.scanner())).rows[0]?.bytes,
    wal: await wal.execute(database.scanner()).then(
      ({ rows }) => rows[0]?.bytes,
      () => undefined,
    ),
  };
}
