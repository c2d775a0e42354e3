/**
 * Measures the cost of a savepoint around a batch: with a savepoint, SQLite copies each page before its first change.
 * Writes the rows of ten messages in a transaction, with and without a savepoint, in alternating rounds:
 * `node bench/database/savepoints.ts [folder of the database]`. Prints microseconds of CPU time per message,
 * the best of the rounds.
 */
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SqliteConnection } from '../../src/kernel/database/sqlite/connection.ts';

/** Number of measured rounds. */
const rounds = 5;

/** Number of batches in a round. */
const batches = 1_000;

/** Number of messages in a batch. */
const messages = 10;

/** Number of rooms that contain the messages. */
const rooms = 32;

const body = JSON.stringify({ type: 'm.room.message', content: { body: 'x'.repeat(600) } });

/** Tables like those of events, with an index for each way to look up a message; `event_times` is the index by time. */
const schema = [
  'create table events (nid integer primary key, event_id text, room integer, depth integer, json text) strict',
  'create unique index events_by_id on events (event_id)',
  'create index events_by_room on events (room, nid)',
  'create index events_by_depth on events (room, depth, nid)',
  'create table event_times (room integer, ts integer, nid integer, primary key (room, ts, nid)) strict, without rowid',
];
const insertEvent = 'insert into events (nid, event_id, room, depth, json) values (?, ?, ?, ?, ?)';
const insertTime = 'insert into event_times (room, ts, nid) values (?, ?, ?)';

let nid = 0;

/** Writes the rows of one batch of messages in a transaction. */
function writeBatch(connection: SqliteConnection, inSavepoint: boolean): void {
  const numbers = Array.from({ length: messages }, () => ++nid);
  connection.run('begin immediate', []);
  if (inSavepoint) connection.run('savepoint one', []);
  connection.runEach(
    insertEvent,
    numbers.map((number) => [
      number,
      hash('sha256', String(number), 'base64url'),
      number % rooms,
      number,
      body,
    ]),
  );
  connection.runEach(
    insertTime,
    numbers.map((number) => [number % rooms, 1_700_000_000_000 + number, number]),
  );
  if (inSavepoint) connection.run('release one', []);
  connection.run('commit', []);
}

/** Writes the batches of a round. @returns microseconds of CPU time per message */
function costOf(connection: SqliteConnection, inSavepoint: boolean): number {
  const before = process.cpuUsage();
  for (let batch = 0; batch < batches; batch++) writeBatch(connection, inSavepoint);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / (batches * messages);
}

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'hearth-savepoints-'));
try {
  const path = join(folder, 'database.db');
  const connection = new SqliteConnection({ path, flush: 'every-commit' }, 'writing');
  for (const sql of schema) connection.run(sql, []);
  const best = { with: Number.POSITIVE_INFINITY, without: Number.POSITIVE_INFINITY };
  for (let round = 0; round <= rounds; round++) {
    const withSavepoint = costOf(connection, true);
    const withoutSavepoint = costOf(connection, false);
    // The first round is ignored: the database is empty.
    if (round === 0) continue;
    best.with = Math.min(best.with, withSavepoint);
    best.without = Math.min(best.without, withoutSavepoint);
  }
  connection.close();
  const ratio = (best.with / best.without).toFixed(2);
  console.log(
    `${best.with.toFixed(1)} µs with a savepoint, ${best.without.toFixed(1)} µs without: ${ratio} times`,
  );
} finally {
  rmSync(folder, { recursive: true });
}
