import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalObject, canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { systemClock } from '../../kernel/clock.ts';
import { type JsonValue, MatrixError, parseJson } from '../../protocol/index.ts';
import { parseLargeJson } from './large-json.ts';

const options = { numbers: 'as written', maxDepth: 100 } as const;

/** Returns the value of a parser, or that it rejects the text. */
async function outcome(parse: () => JsonValue | Promise<JsonValue>): Promise<unknown> {
  try {
    return { value: await parse() };
  } catch (error) {
    if (!(error instanceof MatrixError)) throw error;
    return 'rejected';
  }
}

async function assertSame(text: string | Buffer): Promise<void> {
  const bytes = Buffer.from(text as string);
  const large = await outcome(() => parseLargeJson(bytes, options, systemClock));
  assert.deepEqual(large, await outcome(() => parseJson(bytes, options)), bytes.toString().slice(0, 200));
}

describe('parseLargeJson', () => {
  it('returns the same as parseJson (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        canonicalObject,
        canonicalValue,
        fc.array(canonicalValue),
        async (object, value, list) => {
          await assertSame(JSON.stringify(object));
          await assertSame(JSON.stringify(value));
          await assertSame(
            JSON.stringify({ ...object, list, other: [list, object], deep: { list } }, null, 1),
          );
        },
      ),
    );
  });

  it('returns the same as parseJson for long lists and rejects malformed ones', async () => {
    const items = Array.from({ length: 3_000 }, (_, n) => ({
      n,
      text: `"],[{${'x'.repeat(200)}\\`,
      list: [n],
    }));
    await assertSame(JSON.stringify({ state: items, room: 'x', auth_chain: items.slice(0, 700), none: [] }));
    await assertSame(`{"state":[${'1.50,'.repeat(100_000)}-0,1e400]}`);
    for (const wrong of [',', ',,', '', ']', '}', ',]', '[', '{', '"', '\\', 'x']) {
      const many = JSON.stringify(items).slice(1, -1);
      await assertSame(`{"state":[${many}${wrong}]}`);
      await assertSame(`{"state":[${wrong}${many}]}`);
      await assertSame(`{"state":[${many}]${wrong}}`);
      await assertSame(`{"state":[${many},${wrong}`);
      await assertSame(`{"state":[${many}${' '.repeat(200_000)},${wrong}]}`);
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
        await assertSame(some.join(''));
        await assertSame(`{"a":[${some.join('')}]}`);
        await assertSame(`{"a":${some.join('')}}`);
      }),
      { numRuns: 1_000 },
    );
    await assertSame(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x5b, 0x5d, 0x7d]));
    await assertSame(`{"a":[${'['.repeat(99)}${']'.repeat(99)}]}`);
    await assertSame(`{"a":[${'['.repeat(5)}${']'.repeat(5)}]}`);
  });
});
