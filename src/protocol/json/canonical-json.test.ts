import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { canonicalValue } from '../../../test/protocol/arbitrary.ts';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { MatrixError } from '../errors.ts';
import type { JsonValue } from '../json.ts';
import { canonicalJson, compareCodePoints, MAX_JSON_DEPTH } from './canonical-json.ts';
import { canonicalJsonPieces } from './canonical-pieces.ts';
import { parseJson } from './parse-json.ts';

const badJson = { name: 'MatrixError', errcode: 'M_BAD_JSON' };

suite('canonicalJson: one example for each rule of the specification', () => {
  const nested =
    '{"outer":{"same":true,"id":"@a.b:example.com","inner":{"long_name":"A B","list":' +
    '[{"kind":"mail","at":"a.b@example.org"},{"kind":"number","at":"987654321"}]}}}';
  const examples: readonly (readonly [input: string, canonical: string])[] = [
    ['{ }', '{}'],
    ['{ "one": 1, "two": "Two" }', '{"one":1,"two":"Two"}'],
    ['{ "b": "2", "a": "1" }', '{"a":"1","b":"2"}'],
    [
      nested,
      '{"outer":{"id":"@a.b:example.com","inner":{"list":' +
        '[{"at":"a.b@example.org","kind":"mail"},{"at":"987654321","kind":"number"}],"long_name":"A B"},' +
        '"same":true}}',
    ],
    ['{ "a": "日本語" }', '{"a":"日本語"}'],
    ['{ "本": 2, "日": 1 }', '{"日":1,"本":2}'],
    ['{ "a": "\\u65E5" }', '{"a":"日"}'],
    ['{ "a": null }', '{"a":null}'],
    ['{ "a": -0, "b": 1e10 }', '{"a":0,"b":10000000000}'],
  ];
  for (const [input, canonical] of examples) {
    test(`serialises ${input}`, () => assert.equal(canonicalJson(parseJson(input)), canonical));
  }
});

test('canonicalJson sorts keys by code point, not by UTF-16 unit, and numeric keys as text', () => {
  const text = '{"":0,"10":1,"9":2,"E":3,"e":4,"é":5,"\ud7ff":6,"\ue000":7,"\uffff":8,"\u{1f600}":9}';
  const reversed = Object.fromEntries(Object.entries(JSON.parse(text) as object).reverse());
  assert.equal(canonicalJson(reversed), text);
  assert.ok(compareCodePoints('\uffff', '\u{10000}') < 0);
  assert.ok('\uffff' > '\u{10000}', 'a plain sort puts them the other way round');
});

test('canonicalJson escapes only what JSON demands, in the short form where there is one', () => {
  const text = canonicalJson('\u0000\u0001\b\t\n\u000b\f\r\u001f "\\/\u007f\u0080\u2028\u{1f600}');
  const escaped = '\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\"\\\\/';
  assert.equal(text, `"${escaped}\u007f\u0080\u2028\u{1f600}"`);
});

test('canonicalJson throws M_BAD_JSON for lone surrogates in values and keys', () => {
  for (const value of ['\ud800', 'a\udc00b', { '\ud83d': 1 }, ['\ude00\ud83d']]) {
    assert.throws(() => canonicalJson(value), badJson);
  }
});

suite('canonicalJson: numbers', () => {
  const max = Number.MAX_SAFE_INTEGER;

  test('accepts only integers of 53 bits in strict mode', () => {
    assert.equal(canonicalJson([max, -max, 0, -0]), `[${max},${-max},0,0]`);
    for (const number of [max + 1, -max - 1, 0.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.throws(() => canonicalJson([number]), badJson);
    }
  });

  test('refuses numbers that were written as floats, with exponents or as -0 in strict mode', () => {
    for (const source of ['1.0', '1e3', '-0', '-0.0', '12345678901234567890', '9007199254740993']) {
      const value = parseJson(`[${source}]`, { numbers: 'as written' });
      assert.throws(() => canonicalJson(value), badJson, source);
    }
  });

  test('keeps every digit in "as written" mode', () => {
    const text = '[1.0,1e3,1E+3,0.10,-1.5e-9,12345678901234567890,-9223372036854775808,50.57,1]';
    assert.equal(canonicalJson(parseJson(text, { numbers: 'as written' }), 'as written'), text);
    assert.equal(JSON.stringify(parseJson(text, { numbers: 'as written' })), text);
    assert.equal(canonicalJson(parseJson('-0', { numbers: 'as written' }), 'as written'), '0');
    assert.throws(() => canonicalJson(Number.NaN, 'as written'), badJson);
  });

  test('treats an object with a field rawJSON as an object, not as a RawNumber', () => {
    assert.equal(canonicalJson({ rawJSON: '1.0' }), '{"rawJSON":"1.0"}');
    const nested = parseJson('[1.0,{"rawJSON":"}"}]', { numbers: 'as written' });
    assert.equal(canonicalJson(nested, 'as written'), '[1.0,{"rawJSON":"}"}]');
  });
});

test('canonicalJson leaves out undefined fields and refuses functions', () => {
  assert.equal(canonicalJson({ a: undefined, b: 1, c: undefined }), '{"b":1}');
  assert.equal(canonicalJson({ a: undefined }), '{}');
  const functions = [() => 1] as unknown as JsonValue;
  assert.throws(() => canonicalJson(functions), badJson);
});

test('canonicalJson accepts MAX_JSON_DEPTH levels and refuses one more', () => {
  const nested = (depth: number) => parseJson('['.repeat(depth) + ']'.repeat(depth), { maxDepth: depth });
  assert.equal(canonicalJson(nested(MAX_JSON_DEPTH)).length, 2 * MAX_JSON_DEPTH);
  assert.throws(() => canonicalJson(nested(MAX_JSON_DEPTH + 1)), badJson);
  assert.throws(() => canonicalJson(nested(100_000)), badJson);
});

test('canonicalJsonPieces writes long values in pieces, and refuses what canonicalJson refuses', () => {
  const value = {
    list: Array.from({ length: 3_000 }, (_, index) => ({ index, a: [], b: {}, c: null, d: 'é"' })),
  };
  const pieces = [...canonicalJsonPieces(value)];
  assert.ok(pieces.length > 10);
  assert.equal(pieces.join(''), canonicalJson(value));
  const written = parseJson('{"b":[1.0,-0,1e3,{"x":12345678901234567890}],"a":1.50}', {
    numbers: 'as written',
  });
  assert.equal(
    [...canonicalJsonPieces(written, 'as written')].join(''),
    canonicalJson(written, 'as written'),
  );
  const deep = parseJson('['.repeat(1_001) + ']'.repeat(1_001), { maxDepth: 2_000 });
  for (const invalid of [written, ['\ud800'], { '\ud800': 1 }, deep]) {
    assert.throws(() => [...canonicalJsonPieces(invalid)], badJson);
  }
});

suite('canonicalJson: properties', () => {
  test('writes text that parses to the same value, and writes the same text for the parsed value', () => {
    fc.assert(
      fc.property(canonicalValue, (value) => {
        const text = canonicalJson(value);
        const reparsed = parseJson(text);
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
        assert.equal(canonicalJson(reparsed), text);
        assert.equal(canonicalJson(value, 'as written'), text);
        assert.equal([...canonicalJsonPieces(value)].join(''), text);
      }),
      { numRuns: 2000 },
    );
  });

  test('does not depend on the order of keys at any level', () => {
    fc.assert(
      fc.property(canonicalValue, fc.infiniteStream(fc.nat()), (value, random) => {
        assert.equal(canonicalJson(shuffled(value, random)), canonicalJson(value));
      }),
      { numRuns: 2000 },
    );
  });

  test('sorts keys in the order of their UTF-8 bytes', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: codePoint })), (keys) => {
        const written = canonicalJson(Object.fromEntries(keys.map((key) => [key, 0])));
        const expected = keys
          .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
          .map((key) => `${JSON.stringify(key)}:0`);
        assert.equal(written, `{${expected.join(',')}}`);
      }),
    );
  });

  test('throws only MatrixErrors', () => {
    fc.assert(
      fc.property(
        fc.anything({ withSparseArray: true, withBigInt: true, withNullPrototype: true }),
        (any) => {
          try {
            canonicalJson(any as JsonValue);
          } catch (error) {
            assert.ok(error instanceof MatrixError);
          }
        },
      ),
    );
  });
});

function shuffled(value: JsonValue, random: Iterator<number>): JsonValue {
  if (Array.isArray(value)) return value.map((item: JsonValue) => shuffled(item, random));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => ({
    rank: random.next().value as number,
    entry: [key, shuffled(item as JsonValue, random)] as const,
  }));
  return Object.fromEntries(entries.toSorted((a, b) => a.rank - b.rank).map(({ entry }) => entry));
}
