import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CompiledQuery } from 'kysely';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import {
  afterCommit,
  type Database,
  DatabaseClosed,
  type Migration,
  type Statement,
  TransactionTimeout,
  UniqueViolation,
  type Writer,
} from './index.ts';

interface Schema {
  notes: { id: number; text: string; bytes: Uint8Array | null; weight: number | null };
}

const notes: Migration = {
  name: 'test/0001-notes',
  async up({ db }) {
    await db.schema
      .createTable('notes')
      .addColumn('id', 'bigint', (column) => column.primaryKey())
      .addColumn('text', 'text', (column) => column.notNull())
      .addColumn('bytes', 'bytea')
      .addColumn('weight', 'double precision')
      .execute();
  },
};

const insert = (...rows: [number, string][]): Statement => ({
  sql: 'insert into notes (id, text) values (?, ?)',
  rows,
});

forEachDatabase((open) => {
  test('reader and scanner return what a transaction has written once it has resolved', async () => {
    const database = await open([notes]);
    const text = await database.transaction<Schema, string>(async (writer) => {
      await writer.insertInto('notes').values({ id: 1, text: 'one', bytes: null, weight: 1.5 }).execute();
      return (await writer.selectFrom('notes').select('text').executeTakeFirstOrThrow()).text;
    });
    assert.equal(text, 'one');
    assert.deepEqual(await database.reader<Schema>().selectFrom('notes').selectAll().execute(), [
      { id: 1, text: 'one', bytes: null, weight: 1.5 },
    ]);
    assert.deepEqual(await database.scanner<Schema>().selectFrom('notes').select('id').execute(), [
      { id: 1 },
    ]);
  });

  test('a failed transaction does not fail other transactions of the same flush', async () => {
    const database = await open([notes]);
    const results = await Promise.allSettled(
      [1, 2, 1, 3].map((id) =>
        database.transaction<Schema, void>(async (writer) => {
          await writer.insertInto('notes').values({ id, text: 'x' }).execute();
        }),
      ),
    );
    assert.equal(results.filter(({ status }) => status === 'rejected').length, 1);
    const ids = await database.reader<Schema>().selectFrom('notes').select('id').orderBy('id').execute();
    assert.deepEqual(ids, [{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  test('a failed batch has no effect, and other batches of the same flush succeed', async () => {
    const database = await open([notes]);
    const results = await Promise.allSettled([
      database.batch([insert([1, 'the first'], [1, 'again'])]),
      database.batch([insert([1, 'a'], [2, 'b'])]),
      database.batch([insert([3, 'c'], [1, 'again'])]),
      database.batch([insert([4, 'd']), { sql: 'update notes set text = ? where id = ?', rows: [['e', 4]] }]),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled', 'rejected', 'fulfilled'],
    );
    for (const result of [results[0], results[2]]) {
      assert.ok(result?.status === 'rejected' && result.reason instanceof UniqueViolation);
      assert.equal(result.reason.table, 'notes');
    }
    const rows = await database
      .reader<Schema>()
      .selectFrom('notes')
      .select(['id', 'text'])
      .orderBy('id')
      .execute();
    assert.deepEqual(rows, [
      { id: 1, text: 'a' },
      { id: 2, text: 'b' },
      { id: 4, text: 'e' },
    ]);
  });

  test('a failed batch with many rows has no effect, and other batches succeed', async () => {
    const database = await open([notes]);
    const many = (first: number) =>
      insert(...Array.from({ length: 2_500 }, (_, n): [number, string] => [first + n, 'x']));
    const results = await Promise.allSettled([
      database.batch([insert([1, 'before'])]),
      database.batch([
        many(10_000),
        { sql: 'update notes set text = ? where id = ?', rows: [['y', 12_499]] },
      ]),
      // The last row of this batch already exists.
      database.batch([many(7_501)]),
      database.batch([insert([2, 'after'])]),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    );
    assert.ok(results[2]?.status === 'rejected' && results[2].reason instanceof UniqueViolation);
    const rows = await database.reader<Schema>().selectFrom('notes').selectAll().orderBy('id').execute();
    assert.deepEqual(
      rows.map(({ id }) => id),
      [1, 2, ...Array.from({ length: 2_500 }, (_, n) => 10_000 + n)],
    );
    assert.deepEqual([rows.at(-1)?.text, rows.at(-2)?.text], ['y', 'x']);
  });

  const write = (database: Database, id: number, text = 'x') =>
    database.transaction(async (writer: Writer<Schema>) => {
      await writer.insertInto('notes').values({ id, text }).execute();
    });
  const ids = async (database: Database) => {
    const rows = await database.reader<Schema>().selectFrom('notes').select('id').orderBy('id').execute();
    return rows.map(({ id }) => id);
  };

  test('batches take effect in the order of the calls', async () => {
    const database = await open([notes]);
    const set =
      'insert into notes (id, text) values (1, ?) on conflict (id) do update set text = excluded.text';
    await Promise.all(Array.from({ length: 50 }, (_, n) => database.batch([{ sql: set, rows: [[`${n}`]] }])));
    const row = await database.reader<Schema>().selectFrom('notes').select('text').executeTakeFirst();
    assert.equal(row?.text, '49');
  });

  test('batches that are ready at the same time share one flush', async () => {
    const database = await open([notes], { group: { duration: Number.POSITIVE_INFINITY } });
    const before = { ...database.statistics };
    await Promise.all(Array.from({ length: 100 }, (_, n) => database.batch([insert([n, 'x'])])));
    const { flushes, batches, writes } = database.statistics;
    assert.equal(batches - before.batches, 100);
    assert.equal(writes - before.writes, 100);
    assert.equal(flushes - before.flushes, 1);
    assert.equal((await ids(database)).length, 100);
    assert.equal(database.statistics.reads - before.reads, 1);
  });

  test('a failed statement fails its transaction, even if the error is caught', async () => {
    const database = await open([notes]);
    await write(database, 1);
    const transaction = database.transaction(async (writer: Writer<Schema>) => {
      await writer.insertInto('notes').values({ id: 2, text: 'x' }).execute();
      const duplicate = writer.insertInto('notes').values({ id: 1, text: 'x' }).execute();
      await assert.rejects(duplicate, UniqueViolation);
      return 'not returned';
    });
    await assert.rejects(transaction, UniqueViolation);
    assert.deepEqual(await ids(database), [1]);
  });

  test('transaction rejects with the error that its work throws, and rolls back', async () => {
    const database = await open([notes]);
    class Taken extends Error {}
    const transaction = database.transaction(async (writer: Writer<Schema>) => {
      await writer.insertInto('notes').values({ id: 1, text: 'x' }).execute();
      throw new Taken();
    });
    await assert.rejects(transaction, Taken);
    assert.deepEqual(await ids(database), []);
  });

  test('a hanging transaction is rolled back with TransactionTimeout, and later transactions succeed', async () => {
    // The second transaction has the same limit, and must stay below it on a busy machine.
    const database = await open([notes], { idleLimit: 1_000 });
    const hanging = database.transaction(async (writer: Writer<Schema>) => {
      await writer.insertInto('notes').values({ id: 1, text: 'x' }).execute();
      await new Promise(() => {});
    });
    const next = write(database, 2);
    await assert.rejects(hanging, TransactionTimeout);
    await next;
    assert.deepEqual(await ids(database), [2]);
  });

  test('reader and scanner reject writes', async () => {
    const database = await open([notes]);
    for (const reader of [database.reader<Schema>(), database.scanner<Schema>()]) {
      await assert.rejects(
        reader.insertInto('notes').values({ id: 1, text: 'x' }).execute(),
        /readers cannot write/,
      );
      await assert.rejects(reader.updateTable('notes').set({ text: 'x' }).execute(), /readers cannot write/);
    }
  });

  test('a writer rejects statements after its transaction has ended', async () => {
    const database = await open([notes]);
    let kept: Writer<Schema> | undefined;
    await database.transaction(async (writer: Writer<Schema>) => {
      kept = writer;
    });
    await assert.rejects(
      async () => kept?.insertInto('notes').values({ id: 1, text: 'x' }).execute(),
      /has ended/,
    );
    assert.deepEqual(await ids(database), []);
  });

  test('a transaction includes statements that its work does not await', async () => {
    const database = await open([notes]);
    await database.transaction(async (writer: Writer<Schema>) => {
      for (const id of [1, 2, 3]) void writer.insertInto('notes').values({ id, text: 'x' }).execute();
    });
    assert.deepEqual(await ids(database), [1, 2, 3]);
  });

  test('afterCommit runs the callback once after a commit, and not after a rollback', async () => {
    const database = await open([notes]);
    const called: string[] = [];
    await database.transaction(async (writer) => afterCommit(writer, () => called.push('good')));
    const undone = database.transaction(async (writer) => {
      afterCommit(writer, () => called.push('bad'));
      throw new Error('no');
    });
    await assert.rejects(undone);
    assert.deepEqual(called, ['good']);
  });

  test('values are read as they were written', async () => {
    const database = await open([notes]);
    const bytes = Uint8Array.from({ length: 3_000_000 }, (_, index) => index % 251);
    const view = Buffer.from('in a pool');
    const text = 'ä€😀"\'?$1'.repeat(100_000);
    await database.batch([
      {
        sql: 'insert into notes (id, text, bytes, weight) values (?, ?, ?, ?)',
        rows: [
          [Number.MAX_SAFE_INTEGER, text, bytes, 0.1],
          [-1, '', view, 5],
          [0, '\u2028', null, null],
        ],
      },
    ]);
    const rows = await database.reader<Schema>().selectFrom('notes').selectAll().orderBy('id').execute();
    assert.deepEqual(rows, [
      { id: -1, text: '', bytes: new Uint8Array(view), weight: 5 },
      { id: 0, text: '\u2028', bytes: null, weight: null },
      { id: Number.MAX_SAFE_INTEGER, text, bytes, weight: 0.1 },
    ]);
    assert.deepEqual(
      await database.scanner<Schema>().selectFrom('notes').selectAll().orderBy('id').execute(),
      rows,
    );
  });

  test('values of types that are not portable are rejected', async () => {
    const database = await open([notes]);
    for (const value of [true, undefined, new Date()]) {
      const query = CompiledQuery.raw('select id from notes where id = ?', [value]);
      await assert.rejects(database.reader().executeQuery(query), /cannot bind a/);
    }
    await assert.rejects(
      database.batch([{ sql: 'insert into notes (id, text) values (?, ?)', rows: [['a', 'b']] }]),
    );
  });

  test('compiled statements with ? placeholders run on every database', async () => {
    const database = await open([notes]);
    const sql =
      "insert into notes (id, text) values (?, '?' || ?) on conflict (id) do update set text = excluded.text";
    await database.transaction(async (writer) => {
      for (const text of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
        const { numAffectedRows } = await writer.executeQuery(CompiledQuery.raw(sql, [7, text]));
        assert.equal(numAffectedRows, 1n);
      }
    });
    const { rows } = await database
      .reader()
      .executeQuery(CompiledQuery.raw('select text from notes where id = ?', [7]));
    assert.deepEqual(rows, [{ text: '?g' }]);
  });

  test('text is ordered by code point, sums are numbers, booleans are 0 or 1, and LIKE is case-sensitive', async () => {
    const database = await open([notes]);
    await database.batch([
      insert([1, 'b'], [2, 'B'], [3, 'a'], [4, 'ä'], [5, '_'], [6, '\u{10000}'], [7, '\uffee']),
    ]);
    const reader = database.reader<Schema>();
    const ordered = await reader.selectFrom('notes').select('text').orderBy('text').execute();
    assert.deepEqual(
      ordered.map(({ text }) => text),
      ['B', '_', 'a', 'b', 'ä', '\uffee', '\u{10000}'],
    );
    const query =
      "select sum(id) as sum, count(*) as count, exists(select 1) as truth from notes where text like 'b%'";
    const { rows } = await reader.executeQuery(CompiledQuery.raw(query));
    assert.deepEqual(rows, [{ sum: 1, count: 1, truth: 1 }]);
  });

  test('an insert with "on conflict do nothing" returns only the rows that it has inserted', async () => {
    const database = await open([notes]);
    const upsert = (id: number, text: string) =>
      database.transaction(async (writer: Writer<Schema>) => {
        const result = await writer
          .insertInto('notes')
          .values({ id, text })
          .onConflict((conflict) => conflict.column('id').doNothing())
          .returning('text')
          .execute();
        return result.length;
      });
    assert.deepEqual([await upsert(1, 'a'), await upsert(1, 'b')], [1, 0]);
  });

  test('Database.close waits for writes that were requested before it, and rejects later writes', async () => {
    const database = await open([notes]);
    const writes = [write(database, 1), database.batch([insert([2, 'x'])])];
    const closing = database.close();
    await Promise.all(writes);
    await closing;
    await assert.rejects(write(database, 3), DatabaseClosed);
    await assert.rejects(database.batch([insert([4, 'x'])]), DatabaseClosed);
    const reopened = await open.restart(database);
    assert.deepEqual(await ids(reopened), [1, 2]);
  });
});
