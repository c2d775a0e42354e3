import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases.ts';
import { type Migration, type Statement, UniqueViolation } from './index.ts';

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
  test('a transaction is read once it resolves', async () => {
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

  test('a transaction that fails takes no other of its group with it', async () => {
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

  test('a batch is all or nothing, and the batches beside it are not touched', async () => {
    const database = await open([notes]);
    const results = await Promise.allSettled([
      database.batch([insert([1, 'a'], [2, 'b'])]),
      database.batch([insert([3, 'c'], [1, 'again'])]),
      database.batch([insert([4, 'd']), { sql: 'update notes set text = ? where id = ?', rows: [['e', 4]] }]),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.ok(results[1]?.status === 'rejected' && results[1].reason instanceof UniqueViolation);
    assert.equal(results[1].reason.table, 'notes');
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
});
