import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sql } from 'kysely';
import { silentLogger } from '../../observability/index.ts';
import { type Database, DatabaseOverloaded, openDatabase } from '../index.ts';
import type { SqliteOptions } from './sqlite-database.ts';

const folder = mkdtempSync(join(tmpdir(), 'hearth-sqlite-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const open = (name: string, options: Partial<SqliteOptions> = {}) =>
  openDatabase({ kind: 'sqlite', path: join(folder, name), ...options }, { log: silentLogger });
const makeTable = (database: Database) =>
  database.batch([{ sql: 'create table t (id integer primary key, text text)', rows: [[]] }]);
const insert = (database: Database, id: number, text = 'x') =>
  database.batch([{ sql: 'insert into t (id, text) values (?, ?)', rows: [[id, text]] }]);
const ids = async (database: Database) =>
  (await sql<{ id: number }>`select id from t order by id`.execute(database.reader())).rows.map(
    ({ id }) => id,
  );

test('SQLite: the error for a file that cannot be opened names the file', async () => {
  await assert.rejects(open('no/such/folder/x.db'), /cannot open the database \S*no\/such\/folder\/x\.db/);
});

test('SQLite: a database in memory is deleted when it is closed', async () => {
  const options: SqliteOptions = { kind: 'sqlite', path: ':memory:' };
  const database = await openDatabase(options, { log: silentLogger });
  await makeTable(database);
  await insert(database, 1);
  assert.deepEqual(await ids(database), [1]);
  const { rows } = await sql<{ file: string }>`select file from pragma_database_list`.execute(
    database.reader(),
  );
  await database.close();
  assert.equal(existsSync(rows[0]!.file), false);
});

test('SQLite: close leaves only the database file, without a write-ahead log', async () => {
  const database = await open('clean.db');
  await makeTable(database);
  await database.close();
  assert.equal(existsSync(join(folder, 'clean.db')), true);
  assert.equal(existsSync(join(folder, 'clean.db-wal')), false);
});

test('SQLite: opening an existing file writes nothing', async () => {
  const made = await open('existing.db');
  await makeTable(made);
  await made.close();
  const database = await open('existing.db');
  assert.equal(statSync(join(folder, 'existing.db-wal')).size, 0);
  assert.deepEqual(await ids(database), []);
  await database.close();
});

test('SQLite: the write-ahead log stays below 4 MiB during background work, and grows above 12 MiB otherwise', async () => {
  const database = await open('background.db');
  await makeTable(database);
  const fill = 'insert into t (text) select zeroblob(200000) from (values (1), (2), (3), (4))';
  /** Writes 16 MiB in transactions of 800 kB. @returns the size of the log in MiB */
  const write = async () => {
    for (let count = 0; count < 20; count += 1) await database.batch([{ sql: fill, rows: [[]] }]);
    return statSync(join(folder, 'background.db-wal')).size / 2 ** 20;
  };
  const background = await database.inBackground(() => database.inBackground(write));
  assert.ok(background < 4, `${background} MiB`);
  assert.ok((await write()) > 12);
  await assert.rejects(
    database.inBackground(() => Promise.reject(new Error('the work fails'))),
    /the work fails/,
  );
  await database.close();
});

test('SQLite: a full disk fails writes that do not fit, and later writes succeed when there is space again', async () => {
  const database = await open('full.db');
  await makeTable(database);
  const limit = (pages: number) =>
    database.transaction((writer) => sql.raw(`pragma max_page_count = ${pages}`).execute(writer));
  await limit(20);
  const results = await Promise.allSettled([
    insert(database, 1),
    insert(database, 2, 'x'.repeat(200_000)),
    insert(database, 3),
  ]);
  const [, tooBig] = results;
  assert.ok(tooBig?.status === 'rejected');
  assert.match(String(tooBig.reason), /full/);
  const acknowledged = results.flatMap(({ status }, index) => (status === 'fulfilled' ? [index + 1] : []));
  assert.deepEqual(await ids(database), acknowledged);
  await limit(1_000_000);
  await insert(database, 4, 'x'.repeat(200_000));
  assert.deepEqual(await ids(database), [...acknowledged, 4]);
  await database.close();
});

test('SQLite: a full queue rejects further writes with DatabaseOverloaded', async () => {
  const database = await open('queue.db', { group: { waiting: 2 } });
  await makeTable(database);
  const results = await Promise.allSettled([1, 2, 3].map((id) => insert(database, id)));
  assert.ok(results[2]?.status === 'rejected' && results[2].reason instanceof DatabaseOverloaded);
  assert.deepEqual(await ids(database), [1, 2]);
  await database.close();
});

test('SQLite: a commit group has at most the configured number of entries', async () => {
  const database = await open('group.db', { group: { entries: 10, duration: Number.POSITIVE_INFINITY } });
  await makeTable(database);
  const before = database.statistics.flushes;
  await Promise.all(Array.from({ length: 25 }, (_, id) => insert(database, id)));
  assert.equal(database.statistics.flushes - before, 3);
  await database.close();
});

test('SQLite: a long scan does not block the calling thread', async () => {
  const database = await open('scan.db');
  let turns = 0;
  let isScanning = true;
  const takeTurn = () => {
    turns += 1;
    if (isScanning) setImmediate(takeTurn);
  };
  setImmediate(takeTurn);
  const long = sql<{ n: number }>`
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 2000000)
    select count(*) as n from numbers`;
  const { rows } = await long.execute(database.scanner());
  isScanning = false;
  assert.deepEqual(rows, [{ n: 2_000_000 }]);
  assert.ok(turns > 5, `the thread had ${turns} turns`);
  await database.close();
});
