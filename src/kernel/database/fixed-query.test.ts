import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { FixedQuery, type Reader } from './index.ts';

interface Tables {
  readonly words: { readonly language: string; readonly word: string; readonly length: number };
}

forEachDatabase((open) => {
  describe('FixedQuery', () => {
    it('answers with the rows for the parameters of each call, and is built once', async () => {
      const database = await openWithWords(open);
      let built = 0;
      const query = new FixedQuery((reader: Reader<Tables>, language: string, length: number) => {
        built++;
        return reader
          .selectFrom('words')
          .select('word')
          .where('language', '=', language)
          .where('length', '=', length);
      });
      const reader = database.reader<Tables>();
      assert.deepEqual(await query.execute(reader, 'en', 5), [{ word: 'hello' }]);
      assert.deepEqual(await query.execute(reader, 'de', 5), [{ word: 'hallo' }]);
      assert.deepEqual(await query.execute(reader, 'de', 4), []);
      assert.equal(built, 1);
      await database.close();
    });

    it('reads in a transaction the rows that the transaction has written', async () => {
      const database = await openWithWords(open);
      const query = new FixedQuery((reader: Reader<Tables>, language: string) =>
        reader.selectFrom('words').select(['word', 'length']).where('language', '=', language),
      );
      assert.deepEqual(await query.execute(database.reader<Tables>(), 'fr'), []);
      await database.transaction<Tables, void>(async (writer) => {
        await writer.insertInto('words').values({ language: 'fr', word: 'salut', length: 5 }).execute();
        assert.deepEqual(await query.execute(writer, 'fr'), [{ word: 'salut', length: 5 }]);
      });
      await database.close();
    });

    it('refuses a query that uses its parameters in another order', async () => {
      const database = await openWithWords(open);
      const query = new FixedQuery((reader: Reader<Tables>, language: string, word: string) =>
        reader.selectFrom('words').select('length').where('word', '=', word).where('language', '=', language),
      );
      await assert.rejects(query.execute(database.reader<Tables>(), 'en', 'hello'), TypeError);
      await database.close();
    });
  });
});

type Open = Parameters<Parameters<typeof forEachDatabase>[0]>[0];

async function openWithWords(open: Open) {
  const database = await open();
  await database.batch([
    { sql: 'create table words (language text, word text, length integer)', rows: [[]] },
    {
      sql: 'insert into words values (?, ?, ?)',
      rows: [
        ['en', 'hello', 5],
        ['de', 'hallo', 5],
      ],
    },
  ]);
  return database;
}
