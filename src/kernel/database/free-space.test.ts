import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { sql } from 'kysely';
import { forEachDatabase, forPostgres } from '../../../test/support/databases/databases.ts';
import { claimFile, compactSqliteFile, type Database } from './index.ts';

const migration = {
  name: 'test/0001-notes',
  up: async ({ run }: { run(statement: string): Promise<void> }) => {
    await run('create table notes (id bigint primary key, name text not null, text text not null)');
    await run('create unique index notes_by_name on notes (name)');
  },
};

const rowCount = 10_000;
/** Returns a name of less than 500 bytes, because PostgreSQL compresses longer values in an index. */
const nameOf = (id: number) => `${id} ${'name '.repeat(95)}`;
const text = 'text '.repeat(160);

/** Inserts rows of about 1,300 bytes, then deletes nine of ten. */
async function fillAndDelete(database: Database): Promise<void> {
  const numbers = `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rowCount})`;
  const fill = `${numbers} insert into notes (id, name, text) select i, i || ?, ? from n`;
  await database.batch([{ sql: fill, rows: [[nameOf(0).slice(1), text]] }]);
  await database.batch([{ sql: 'delete from notes where id % 10 <> ?', rows: [[0]] }]);
}

/** The rows that `fillAndDelete` leaves. */
const kept = Array.from({ length: rowCount / 10 }, (_, index) => {
  const id = 10 * (index + 1);
  return { id, name: nameOf(id), text };
});

const read = async (database: Database) =>
  (
    await sql<{ id: number; name: string; text: string }>`
      select id, name, text from notes order by id`.execute(database.reader<never>())
  ).rows.map((row) => ({ ...row }));

const signal = new AbortController().signal;

forEachDatabase((open) => {
  it('Database.releaseSpace releases the space of deleted rows and of their index entries to the file system, and keeps the other rows', async () => {
    const database = await open([migration]);
    const empty = await database.size();
    await fillAndDelete(database);
    const full = (await database.size()) - empty;
    assert.ok(full > 16 * 2 ** 20);
    assert.equal(await database.releaseSpace(AbortSignal.abort()), 0);
    const released = await database.releaseSpace(signal);
    assert.deepEqual(await read(database), kept);
    const left = (await database.size()) - empty;
    assert.ok(left <= full / 4, `${left} of ${full} bytes are left`);
    assert.ok(released >= (full - left) * 0.9, `${released} bytes were released`);
    assert.equal(database.statistics.releasedBytes, released);
    assert.equal(await database.releaseSpace(signal), 0, 'nothing is left to release');
  });
});

forPostgres((open) => {
  it('Database.releaseSpace releases the space of deleted values of 5 KB, which PostgreSQL stores outside of their rows', async () => {
    const database = await open([migration]);
    const empty = await database.size();
    // Values that cannot be compressed, like encrypted messages.
    const fill = `insert into notes (id, name, text)
      select i, cast(i as text), (select string_agg(md5(cast(i * 160 + j as text)), '') from generate_series(1, 160) j)
      from generate_series(1, ?) i`;
    await database.batch([{ sql: fill, rows: [[1_500]] }]);
    const full = (await database.size()) - empty;
    await database.batch([{ sql: 'delete from notes where id <= ?', rows: [[1_350]] }]);
    const digest = async () =>
      (
        await sql<object>`select count(*) as rows, md5(string_agg(text, '' order by id)) as texts
          from notes`.execute(database.reader<never>())
      ).rows[0];
    const before = await digest();
    const released = await database.releaseSpace(signal);
    assert.deepEqual(await digest(), before);
    const left = (await database.size()) - empty;
    assert.ok(left <= full / 4, `${left} of ${full} bytes are left`);
    assert.ok(released >= (full - left) * 0.9, `${released} bytes were released`);
    const { movedRows } = database.statistics;
    assert.equal(await database.releaseSpace(signal), 0);
    assert.equal(database.statistics.movedRows, movedRows, 'values that are dense are not written again');
  });

  it('Database.releaseSpace loses no update that runs at the same time, continues after an interruption, and removes the index that an interrupted REINDEX has left', async () => {
    const database = await open([migration]);
    await fillAndDelete(database);
    const full = await database.size();
    for (const statement of [
      'create index notes_by_id_ccnew on notes (id)',
      `update pg_index set indisvalid = false where indexrelid = 'notes_by_id_ccnew'::regclass`,
    ])
      await database.batch([{ sql: statement, rows: [[]] }]);
    const stopping = new AbortController();
    let isDone = false;
    let updates = 0;
    const updating = async () => {
      for (; !isDone; updates++) {
        const id = 10 * (1 + ((updates * 7) % (rowCount / 10)));
        await database.batch([{ sql: 'update notes set text = text || ? where id = ?', rows: [['+', id]] }]);
        if (database.statistics.movedRows > 100) stopping.abort();
        await setTimeout(1);
      }
    };
    const updated = updating();
    await database.releaseSpace(stopping.signal);
    const movedUntilStop = database.statistics.movedRows;
    assert.ok(stopping.signal.aborted && movedUntilStop < rowCount / 10);
    await database.releaseSpace(signal);
    isDone = true;
    await updated;
    await database.releaseSpace(signal);
    assert.ok(database.statistics.movedRows > movedUntilStop);
    const all = await read(database);
    assert.deepEqual(
      all.map(({ id, name }) => ({ id, name })),
      kept.map(({ id, name }) => ({ id, name })),
    );
    const added = all.reduce((sum, row) => sum + row.text.length - text.length, 0);
    assert.equal(added, updates);
    assert.ok((await database.size()) < full / 2);
    const indexes = await sql<{ name: string }>`
      select indexname as name from pg_indexes where tablename = 'notes' order by name`.execute(
      database.reader<never>(),
    );
    assert.deepEqual(
      indexes.rows.map(({ name }) => name),
      ['notes_by_name', 'notes_pkey'],
    );
  });
});

it('compactSqliteFile shrinks a file that was created without auto_vacuum, keeps its rows, and refuses a file in use', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-compact-'));
  const path = join(folder, 'old.db');
  try {
    const old = new DatabaseSync(path);
    old.exec('pragma journal_mode = wal');
    old.exec('create table notes (id integer primary key, text text not null)');
    old.exec(`with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
      insert into notes select i, printf('%02000d', i) from n`);
    old.exec('delete from notes where id > 100');
    old.close();
    const before = statSync(path).size;
    const release = claimFile(path);
    assert.throws(() => compactSqliteFile(path, 0), /is in use/);
    release();
    const released = compactSqliteFile(path);
    assert.ok(released > before / 2, `${released} of ${before} bytes`);
    assert.equal(statSync(path).size, before - released);
    const read = new DatabaseSync(path);
    assert.deepEqual({ ...read.prepare('pragma auto_vacuum').get() }, { auto_vacuum: 2 });
    assert.deepEqual(
      { ...read.prepare('select count(*) as n, sum(id) as ids from notes').get() },
      { n: 100, ids: 5_050 },
    );
    read.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
