import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { forEachDatabase } from '../../../../test/support/databases/databases.ts';
import { runs } from '../../../../test/support/inputs/thoroughness.ts';
import type { Database, Migration, Writer } from '../index.ts';
import type { TextDocument } from './full-text.ts';
import { foldText, gramsOf, TextQuery } from './grams.ts';

const notes: Migration = { name: 'test/full-text', up: (schema) => schema.fullText('note_texts') };

const texts: readonly string[] = [
  'Hello World',
  'こんにちは世界',
  '你好,朋友',
  'Größe und Élan',
  'a rainbow over the sea 🌈',
  'hel lo wor ld',
  '안녕하세요 여러분',
];

forEachDatabase((open) => {
  const put = (database: Database, documents: readonly TextDocument[]) =>
    database.transaction((writer: Writer<unknown>) => database.fullText('note_texts').put(writer, documents));

  const opened = async () => {
    const database = await open([notes]);
    await put(
      database,
      texts.map((text, index) => ({ id: index + 1, scope: (index % 2) + 1, text })),
    );
    const index = database.fullText('note_texts');
    const find = async (term: string, scopes?: readonly number[]) => {
      const query = new TextQuery(term);
      const ids = await index.candidates({ query, limit: 100, ...(scopes && { scopes }) });
      return ids.map((id) => texts[id - 1]!).filter((text) => query.matches(text));
    };
    return { database, index, find };
  };

  test('full text finds words, parts of words, and short beginnings of words', async () => {
    const { find } = await opened();
    assert.deepEqual(await find('hello'), ['Hello World']);
    assert.deepEqual(await find('WORLD ell'), ['Hello World']);
    assert.deepEqual(await find('grosse'), []);
    assert.deepEqual(await find('größ elan'), ['Größe und Élan']);
    assert.deepEqual(await find('grö'), ['Größe und Élan']);
    assert.deepEqual(await find('he'), ['hel lo wor ld', 'Hello World']);
    assert.deepEqual(await find('ll'), []);
    assert.deepEqual(await find('🌈'), [texts[4]]);
  });

  test('full text finds parts of texts in scripts without spaces, even single characters', async () => {
    const { find } = await opened();
    assert.deepEqual(await find('世界'), ['こんにちは世界']);
    assert.deepEqual(await find('友'), ['你好,朋友']);
    assert.deepEqual(await find('ニチハ'), []);
    assert.deepEqual(await find('にちは'), ['こんにちは世界']);
    assert.deepEqual(await find('녕하'), ['안녕하세요 여러분']);
    assert.deepEqual(await find('好你'), []);
  });

  test('full text finds nothing for a query without word characters, and nothing in an empty list of scopes', async () => {
    const { find } = await opened();
    for (const term of ['', '  ', '"', '* ? NEAR(', '%']) {
      const found = await find(term);
      assert.deepEqual(found, [], term);
    }
    assert.deepEqual(await find('hello', []), []);
  });

  test('full text restricts searches to scopes, and returns pages that begin with the highest id', async () => {
    const { index, find } = await opened();
    assert.deepEqual(await find('he', [1]), ['Hello World']);
    assert.deepEqual(await find('he', [2]), ['hel lo wor ld']);
    const many = Array.from({ length: 3_000 }, (_, scope) => scope + 2);
    assert.deepEqual(await find('he', many), ['hel lo wor ld']);
    const query = new TextQuery('he');
    assert.deepEqual(await index.candidates({ query, limit: 1 }), [6]);
    assert.deepEqual(await index.candidates({ query, before: 6, limit: 1 }), [1]);
    assert.deepEqual(await index.candidates({ query, before: 1, limit: 1 }), []);
  });

  test('full text replaces and removes documents', async () => {
    const { database, index, find } = await opened();
    await put(database, [{ id: 1, scope: 1, text: 'something else' }]);
    assert.deepEqual(await find('hello'), []);
    assert.deepEqual(await index.candidates({ query: new TextQuery('else'), limit: 5 }), [1]);
    await database.transaction((writer) => index.remove(writer, [1, 4_000]));
    assert.deepEqual(await index.candidates({ query: new TextQuery('else'), limit: 5 }), []);
    assert.deepEqual(await find('世界'), ['こんにちは世界']);
  });

  test('full text replaces and removes documents in a batch', async () => {
    const { database, index, find } = await opened();
    await database.batch(index.statements([{ id: 1, scope: 1, text: 'in a batch' }], [4]));
    assert.deepEqual(await find('hello'), []);
    assert.deepEqual(await find('größ'), []);
    assert.deepEqual(await index.candidates({ query: new TextQuery('batch'), limit: 5 }), [1]);
    assert.deepEqual(index.statements([], []), []);
  });

  test('full text returns every matching document as a candidate (property)', async () => {
    const database = await open([notes]);
    const index = database.fullText('note_texts');
    const text = fc.string({ unit: fc.constantFrom(...'ab cdÄ界世ニ友9-🌈"\u0301'), maxLength: 12 });
    let id = 0;
    await fc.assert(
      fc.asyncProperty(text, fc.nat(11), fc.nat(11), async (content, from, length) => {
        id += 1;
        const document = content.replaceAll('\0', ' ');
        await put(database, [{ id, scope: id, text: document }]);
        const query = new TextQuery(document.slice(from, from + length));
        const found = await index.candidates({ query, scopes: [id], limit: 1 });
        assert.equal(
          found.length >= (query.matches(document) ? 1 : 0),
          true,
          `${document} / ${from} ${length}`,
        );
      }),
      { numRuns: runs(60) },
    );
  });
});

test('foldText removes case, accents and width, but keeps voiced marks of kana', () => {
  assert.equal(foldText('Straße ÉCOLE ﬁ'), 'straße ecole fi');
  assert.equal(foldText('か が'), 'か が');
  assert.equal(foldText('ﾊﾝｶｸ'), 'ハンカク');
});

test('gramsOf returns the same grams of ASCII text when non-ASCII text follows it (property)', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii', maxLength: 60 }), (text) => {
      const mixed = gramsOf(`${text} \u00df`);
      mixed.delete('\u00df');
      assert.deepEqual([...gramsOf(text)].sort(), [...mixed].sort());
    }),
  );
});

test('gramsOf and TextQuery bound the number of grams of long texts and long queries', () => {
  const words = Array.from({ length: 100_000 }, (_, n) => n.toString(36));
  assert.ok(gramsOf(words.join(' ')).size < 20_000);
  assert.ok(new TextQuery(Array.from({ length: 500 }, (_, n) => `word${n}`).join(' ')).grams.size < 200);
});
