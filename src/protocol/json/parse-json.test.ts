import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { MatrixError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { canonicalJson, MAX_JSON_DEPTH } from './canonical-json.ts';
import { exceedsDepth } from './depth.ts';
import { parseJson, parseJsonObject } from './parse-json.ts';
import { isRawNumber, numberOf } from './raw-number.ts';

const notJson = { name: 'MatrixError', status: 400, errcode: 'M_NOT_JSON' };
const badJson = { name: 'MatrixError', status: 400, errcode: 'M_BAD_JSON' };

test('parseJson reads bytes and strings alike', () => {
  const text = '{"a":[1,"日本語",true,null]}';
  const expected = { a: [1, '日本語', true, null] };
  assert.deepEqual(parseJson(text), expected);
  assert.deepEqual(parseJson(Buffer.from(text)), expected);
  assert.deepEqual(parseJson(new Uint8Array([32, ...Buffer.from(text)]).subarray(1)), expected);
});

test('parseJson refuses invalid JSON with M_NOT_JSON and does not quote it', () => {
  const secret = '{"password":"hunter2",}';
  for (const input of ['', ' ', '{', '{"a":1}}', "{'a':1}", '[01]', 'NaN', '\ufeff{}', '"\n"', secret]) {
    assert.throws(() => parseJson(input), notJson, input);
  }
  for (const bytes of [[0xff], [0x22, 0xc3, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0xfe, 0xff, 0, 0x31]]) {
    assert.throws(() => parseJson(Uint8Array.from(bytes)), notJson);
  }
  assert.throws(
    () => parseJson(secret),
    (error: Error) => !error.message.includes('hunter2'),
  );
});

test('parseJson keeps the last of duplicate keys', () => {
  assert.deepEqual(parseJson('{"a":1,"b":2,"a":3}'), { a: 3, b: 2 });
});

test('parseJson makes __proto__ an ordinary property', () => {
  const value = parseJsonObject('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal((value as { admin?: boolean }).admin, undefined);
  assert.equal(({} as { admin?: boolean }).admin, undefined);
  assert.equal(
    canonicalJson(value),
    '{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
  );
  const withNumber = parseJsonObject('{"__proto__":{"a":1.0}}', { numbers: 'as written' });
  assert.equal(Object.getPrototypeOf(withNumber), Object.prototype);
  assert.equal(canonicalJson(withNumber, 'as written'), '{"__proto__":{"a":1.0}}');
});

test('parseJsonObject throws M_BAD_JSON for values that are not objects', () => {
  assert.deepEqual(parseJsonObject('{}'), {});
  for (const text of ['[]', '1', 'null', '"{}"']) assert.throws(() => parseJsonObject(text), badJson);
  assert.throws(() => parseJsonObject('1.0', { numbers: 'as written' }), badJson);
});

test('parseJson throws M_TOO_LARGE for input above maxSize', () => {
  assert.deepEqual(parseJson('[1,2]', { maxSize: 5 }), [1, 2]);
  assert.throws(() => parseJson('[1,2]', { maxSize: 4 }), { errcode: 'M_TOO_LARGE', status: 413 });
});

suite('parseJson: nesting depth', () => {
  const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;

  test('limits nesting to MAX_JSON_DEPTH, or to maxDepth', () => {
    assert.ok(parseJson(nested(MAX_JSON_DEPTH)));
    assert.throws(() => parseJson(nested(MAX_JSON_DEPTH + 2)), badJson);
    assert.ok(parseJson(nested(4), { maxDepth: 4 }));
    assert.throws(() => parseJson(nested(6), { maxDepth: 4 }), badJson);
  });

  test('ignores brackets in strings', () => {
    const text = JSON.stringify({ a: '[[[[', 'b"]\\': '\\"{{{{\\\\', c: ['"[', '\\'] });
    assert.equal(exceedsDepth(text, 2), false);
    assert.equal(exceedsDepth(text, 1), true);
  });

  test('refuses megabytes of brackets and quotes in little time and stack', () => {
    const took = cpuTime(() => {
      assert.throws(() => parseJson('['.repeat(1e7)), badJson);
      assert.throws(() => parseJson(`"${'\\'.repeat(1e7)}`), notJson);
      assert.throws(() => parseJson(`"${'\\"'.repeat(5e6)}`), notJson);
      assert.throws(() => parseJson(`[${'1'.repeat(1e7)}`, { numbers: 'as written' }), notJson);
    });
    assert.ok(took < 5000, `${took} ms`);
  });

  test('exceedsDepth agrees with the depth of the parsed value', () => {
    fc.assert(
      fc.property(canonicalValue, fc.integer({ min: 1, max: 6 }), (value, max) => {
        assert.equal(exceedsDepth(JSON.stringify(value), max), depthOf(value) > max);
      }),
    );
  });

  function depthOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) return 0;
    return 1 + Math.max(0, ...Object.values(value).map(depthOf));
  }
});

suite('parseJson: numbers', () => {
  test('reads numbers as doubles by default', () => {
    assert.deepEqual(parseJson('[1.0,1e3,12345678901234567890]'), [1, 1000, 12345678901234567000]);
  });

  test('keeps numbers as written on request, only where JavaScript would print them differently', () => {
    const numbers = '[1,-5,0.5,1.0,1e3,-0,12345678901234567890]';
    const list = parseJson(numbers, { numbers: 'as written' }) as readonly JsonObject[];
    assert.deepEqual(
      list.map((value) => isRawNumber(value)),
      [false, false, false, true, true, true, true],
    );
    assert.deepEqual(
      list.map((value) => numberOf(value)),
      [1, -5, 0.5, 1, 1000, -0, 12345678901234567000],
    );
    assert.equal(numberOf('1'), undefined);
    assert.equal(numberOf(undefined), undefined);
  });

  test('finds numbers to keep wherever JSON allows a number', () => {
    for (const text of [
      '1.0',
      '[ 1.0]',
      '[1,1.0]',
      '{"a":1.0}',
      '{"a"\n:\n\t1.0}',
      '[-0]',
      '[-1e1]',
      '[1E1]',
    ]) {
      const compact = text.replace(/\s/g, '');
      assert.equal(JSON.stringify(parseJson(text, { numbers: 'as written' })), compact);
    }
    fc.assert(
      fc.property(
        fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger()),
        (number) => {
          for (const source of [JSON.stringify(number), number.toExponential()]) {
            const value = parseJson(`{"a":[${source}]}`, { numbers: 'as written' });
            assert.equal(JSON.stringify(value), `{"a":[${source}]}`);
          }
        },
      ),
    );
  });
});

test('parseJson accepts lone surrogates by default and refuses them with wellFormed', () => {
  const lone = ['"\\ud800"', '["a",{"b":"\\udc00x"}]', '{"\\ud83d":1}', '"\\ude00\\ud83d"', '"\\\\\\ud800"'];
  for (const text of lone) {
    assert.ok(parseJson(text) !== undefined);
    assert.throws(() => parseJson(text, { wellFormed: true }), badJson, text);
  }
  for (const text of ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\u{1f600}"', '{"a":"b"}']) {
    assert.deepEqual(parseJson(text, { wellFormed: true }), JSON.parse(text));
  }
  assert.throws(() => parseJson('"\ud800"', { wellFormed: true }), badJson);
});

suite('parseJson: hostile input', () => {
  const options = [{}, { numbers: 'as written' as const, wellFormed: true, maxDepth: 5 }];

  test('returns a value or throws a MatrixError for random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...options), (bytes, option) => {
        expectOnlyMatrixErrors(() => parseJson(bytes, option));
      }),
      { numRuns: 3000 },
    );
  });

  test('returns a value or throws a MatrixError for mutated documents', () => {
    const mutation = fc.tuple(fc.nat(), fc.nat(255));
    fc.assert(
      fc.property(
        canonicalValue,
        fc.array(mutation, { maxLength: 4 }),
        fc.constantFrom(...options),
        (value, mutations, option) => {
          const bytes = Buffer.from(JSON.stringify(value));
          for (const [index, byte] of mutations) bytes[index % bytes.length] = byte;
          expectOnlyMatrixErrors(() => parseJson(bytes, option));
        },
      ),
      { numRuns: 3000 },
    );
  });

  function expectOnlyMatrixErrors(work: () => unknown): void {
    try {
      work();
    } catch (error) {
      assert.ok(error instanceof MatrixError, String(error));
    }
  }
});
