/**
 * Compares a SQLite writing connection on the main thread with one in a worker thread. Runs the same group
 * commit over both, in alternating rounds: `node bench/database/writer-thread.ts [folder of the database]`.
 *
 * Each operation writes three rows, like a message event, in one of three ways: `batch`, in one batch;
 * `signed`, in a batch after a hash and a signature on the main thread, like a sent event; `stepwise`, in a
 * transaction whose statements run one by one, each after the result of the previous one.
 */
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Statement } from '../../src/kernel/database/index.ts';
import { CommitQueue, type Entry } from '../../src/kernel/database/sqlite/commit-queue.ts';
import { SqliteConnection } from '../../src/kernel/database/sqlite/connection.ts';
import { BatchEntry } from '../../src/kernel/database/sqlite/entries.ts';
import type { Group } from '../../src/kernel/database/sqlite/group.ts';
import { OperationRunner } from '../../src/kernel/database/sqlite/operation-runner.ts';
import type { Executor } from '../../src/kernel/database/sqlite/protocol.ts';
import { WorkerClient } from '../../src/kernel/database/sqlite/worker-client.ts';
import { noStatistics } from '../../src/kernel/database/statistics.ts';
import { median } from '../load/statistics.ts';

/** Milliseconds of a measurement. */
const duration = 1_500;

/** Number of measurements of each kind of work on each thread. Their median is printed. */
const rounds = 3;

const { privateKey } = generateKeyPairSync('ed25519');
const body = JSON.stringify({ type: 'm.room.message', content: { body: 'x'.repeat(400) } });

interface WriterConnection extends Executor {
  close(): Promise<void>;
}

const schema = [
  'create table events (position integer primary key, room integer, json text) strict',
  'create table event_ids (event_id text primary key, position integer) strict, without rowid',
  'create table timeline (room integer, position integer, primary key (room, position)) strict, without rowid',
];

function mainThread(path: string): WriterConnection {
  const connection = new SqliteConnection({ path, flush: 'every-commit' }, 'writing');
  const runner = new OperationRunner(connection, 'writing');
  return { send: async (operations) => runner.run(operations), close: async () => connection.close() };
}

function workerThread(path: string): WriterConnection {
  return new WorkerClient({ file: { path, flush: 'every-commit' }, access: 'writing' }, (error) => {
    throw error;
  });
}

let position = 0;

/** Returns the statements that write one message. @param signed whether to compute a hash and a signature first */
function messageRows(signed: boolean): Statement[] {
  position += 1;
  const room = position % 32;
  if (signed) sign(null, createHash('sha256').update(body).digest(), privateKey);
  return [
    { sql: 'insert into events (position, room, json) values (?, ?, ?)', rows: [[position, room, body]] },
    {
      sql: 'insert into event_ids (event_id, position) values (?, ?)',
      rows: [[createHash('sha256').update(String(position)).digest('base64url'), position]],
    },
    { sql: 'insert into timeline (room, position) values (?, ?)', rows: [[room, position]] },
  ];
}

type Work = 'batch' | 'signed' | 'stepwise';

/** An entry whose statements run one by one, in a savepoint. */
class StepwiseEntry implements Entry {
  readonly isLarge = false;
  readonly #statements: readonly Statement[];
  readonly committed: () => void;
  readonly failed: (error: unknown) => void;

  constructor(statements: readonly Statement[], committed: () => void, failed: (error: unknown) => void) {
    this.#statements = statements;
    this.committed = committed;
    this.failed = failed;
  }

  async run(group: Group): Promise<void> {
    group.control('savepoint');
    for (const { sql, rows } of this.#statements) {
      await group.send({ kind: 'query', sql, parameters: rows[0]! });
    }
    group.control('release');
  }
}

interface Measurement {
  /** Operations per second. */
  readonly throughput: number;
  /** Flushes of the database to the disk. */
  readonly flushesPerSecond: number;
  /** 95th percentile of the milliseconds of an operation. */
  readonly latency: number;
  /** 99th percentile of the milliseconds for which the event loop was blocked. */
  readonly loopDelay: number;
}

/** @param parent folder for the folder of the database, which is deleted afterwards */
async function measure(
  make: (path: string) => WriterConnection,
  clients: number,
  work: Work,
  parent: string,
): Promise<Measurement> {
  const folder = mkdtempSync(join(parent, 'hearth-bench-'));
  const connection = make(join(folder, 'bench.db'));
  const statistics = noStatistics();
  const limits = { entries: 1_000, duration: 50, waiting: 100_000 };
  const queue = new CommitQueue(connection, systemClock, limits, statistics);
  const run = (statements: Statement[]) =>
    new Promise<void>((resolve, reject) =>
      queue.add(
        work === 'stepwise'
          ? new StepwiseEntry(statements, resolve, reject)
          : new BatchEntry(statements, { resolve, reject }),
      ),
    );
  await run(schema.map((sql) => ({ sql, rows: [[]] })));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const latencies: number[] = [];
  delay.enable();
  const start = performance.now();
  const client = async () => {
    while (performance.now() - start < duration) {
      const before = performance.now();
      await run(messageRows(work === 'signed'));
      latencies.push(performance.now() - before);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const elapsed = performance.now() - start;
  delay.disable();
  await connection.close();
  rmSync(folder, { recursive: true });
  latencies.sort((a, b) => a - b);
  return {
    throughput: (latencies.length / elapsed) * 1_000,
    flushesPerSecond: (statistics.flushes / elapsed) * 1_000,
    latency: latencies[Math.floor(latencies.length * 0.95)] ?? Number.NaN,
    // The histogram is in nanoseconds, and includes the resolution of one millisecond.
    loopDelay: delay.percentile(99) / 1e6 - 1,
  };
}

const parent = process.argv[2] ?? tmpdir();
const connections = { main: mainThread, worker: workerThread };
console.log('clients  work      thread  per second  flushes/s  p95 ms  loop blocked p99 ms');
for (const work of ['batch', 'signed', 'stepwise'] as const) {
  for (const clients of [1, 32, 256]) {
    const results = { main: [] as Measurement[], worker: [] as Measurement[] };
    for (let round = 0; round < rounds; round += 1) {
      for (const name of ['main', 'worker'] as const) {
        results[name].push(await measure(connections[name], clients, work, parent));
      }
    }
    for (const name of ['main', 'worker'] as const) {
      const of = (key: keyof Measurement) => median(results[name].map((result) => result[key]));
      const cells = [
        of('throughput').toFixed(0),
        of('flushesPerSecond').toFixed(0),
        of('latency').toFixed(2),
        of('loopDelay').toFixed(2),
      ];
      console.log(
        [String(clients).padEnd(8), work.padEnd(9), name.padEnd(7)].join(' '),
        cells.map((cell, index) => cell.padStart([10, 10, 7, 13][index]!)).join(' '),
      );
    }
  }
}
