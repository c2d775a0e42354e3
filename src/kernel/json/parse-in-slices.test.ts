import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalObject, canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { type JsonValue, MatrixError, parseJson } from '../../protocol/index.ts';
import { systemClock } from '../clock.ts';
import { TimeSlices } from '../time-slices.ts';
import { parseInSlices } from './parse-in-slices.ts';

const options = { numbers: 'as written', maxDepth: 100 } as const;

/** Returns the value of a parser; `rejected` when the parser throws a MatrixError. */
async function outcome(parse: () => JsonValue | Promise<JsonValue>): Promise<unknown> {
  try {
    return { value: await parse() };
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    return 'rejected';
  }
}

/** Checks that `parseInSlices` returns or rejects what `parseJson` does. */
async function assertSame(text: string | Buffer, pieceBytes?: number): Promise<void> {
  const bytes = Buffer.from(text as string);
  const slices = new TimeSlices(systemClock, 0);
  const parse = (piece: Buffer) => parseJson(piece, options);
  const inSlices = await outcome(() =>
    parseInSlices(bytes, { parse, maxDepth: options.maxDepth, slices, pieceBytes }),
  );
  assert.deepEqual(inSlices, await outcome(() => parseJson(bytes, options)), bytes.toString().slice(0, 200));
}

describe('parseInSlices', () => {
  it('returns the same as parseJson (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        canonicalObject,
        canonicalValue,
        fc.array(canonicalValue),
        async (object, value, list) => {
          for (const pieceBytes of [1, 10, 100]) {
            await assertSame(JSON.stringify(object), pieceBytes);
            await assertSame(JSON.stringify(value, null, 1), pieceBytes);
            await assertSame(JSON.stringify({ list, value, deep: [{ list, object }] }), pieceBytes);
          }
          await assertSame(
            JSON.stringify({ ...object, list, other: [list, object], deep: { list } }, null, 1),
          );
        },
      ),
      { numRuns: runs(100) },
    );
  });

  it('returns the same as parseJson for long lists, and rejects the same malformed lists', async () => {
    const items = Array.from({ length: 800 }, (_, n) => ({
      n,
      text: `"],[{${'x'.repeat(200)}\\`,
      list: [n],
    }));
    await assertSame(JSON.stringify({ state: items, room: 'x', auth_chain: items.slice(0, 400), none: [] }));
    await assertSame(`{"state":[${'1.50,'.repeat(30_000)}-0,1e400]}`);
    const many = JSON.stringify(items).slice(1, -1);
    for (const wrong of [',', ',,', '', ']', '}', ',]', '[', '{', '"', '\\', 'x']) {
      await assertSame(`{"state":[${many}${wrong}]}`);
      await assertSame(`{"state":[${wrong}${many}]}`);
      await assertSame(`{"state":[${many}]${wrong}}`);
      await assertSame(`{"state":[${many},${wrong}`);
      await assertSame(`{"state":[${many}${' '.repeat(70_000)},${wrong}]}`);
    }
  });

  it('returns the same as parseJson for arbitrary fragments of JSON (property)', async () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      '"a"',
      '1',
      '-',
      ' ',
      '"__proto__":',
      'null',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { maxLength: 20 }), async (some) => {
        for (const pieceBytes of [0, 1, 3, 8]) await assertSame(some.join(''), pieceBytes);
        await assertSame(`{"a":[${some.join('')}]}`);
        await assertSame(`{"a":${some.join('')}}`);
      }),
      { numRuns: runs(1_000) },
    );
    // The byte 0xff is not valid in UTF-8.
    await assertSame(Buffer.from('{"\xff":[]}', 'latin1'));
    await assertSame(`{"a":[${'['.repeat(99)}${']'.repeat(99)}]}`);
    await assertSame(`{"a":[${'['.repeat(5)}${']'.repeat(5)}]}`);
  });

  it('returns the same as parseJson for long objects, and for long values at any depth', async () => {
    const members = Object.fromEntries(items(1_000).map((item, n) => [`key "${n}\\`, item]));
    const deep = JSON.stringify({
      a: [[{ members }], { b: members, __proto: 1 }],
      'x"': { 'y\\': [members] },
    });
    await assertSame(deep);
    await assertSame(deep.replaceAll('"__proto"', '"__proto__"'));
    await assertSame(`{"__proto__":${JSON.stringify(members)},"n":1.50}`);
    const many = JSON.stringify(members).slice(1, -1);
    for (const wrong of [
      ',',
      ':',
      '"a"',
      '"a":',
      ':1',
      '"a":1,',
      ',"a":1',
      '1:2',
      '{}',
      '"a" "b":1',
      '"a":"b":1',
      ']',
    ]) {
      await assertSame(`{"o":{${many}${wrong}}}`);
      await assertSame(`{"o":{${wrong}${many}}}`);
      await assertSame(`{${wrong}{${many}}}`);
      await assertSame(`[${wrong}{${many}}]`);
      await assertSame(`{"o":{${many}}${wrong}}`);
      await assertSame(`[{${many}}${wrong}]`);
      await assertSame(`[{${many}},${wrong}]`);
    }
  });
});

const items = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ n, text: `"],[{${'x'.repeat(100)}\\`, list: [n, {}] }));
