import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../../test/support/inputs/code-point.ts';
import { MatrixError } from '../../../protocol/index.ts';
import { clientJsonLimits, parseJson, parseServerBody, serverJsonLimits } from './json-body.ts';

const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));

function codeOf(bytes: Buffer, limits = clientJsonLimits): string | undefined {
  try {
    parseJson(bytes, limits);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof MatrixError, String(error));
    return error.errcode;
  }
}

describe('parseJson', () => {
  it('parses every text that JSON.stringify writes, unless it contains __proto__ or a lone surrogate', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: codePoint }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('__proto__') && !/\\ud[89a-f]/i.test(text));
        assert.deepEqual(parseJson(Buffer.from(text), clientJsonLimits), JSON.parse(text));
      }),
    );
  });

  it('returns a value or throws a MatrixError for any input', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        assert.ok([undefined, 'M_BAD_JSON', 'M_NOT_JSON'].includes(codeOf(Buffer.from(bytes))));
      }),
    );
  });

  it('keeps numbers of other servers as they are written, since signatures cover them', () => {
    const text = '{"a":1.0,"b":[1e3,-0,12345678901234567890],"c":5}';
    assert.equal(JSON.stringify(parseJson(Buffer.from(text), serverJsonLimits)), text);
    assert.equal(JSON.stringify(parseJson(Buffer.from('[1.0,1e3]'), clientJsonLimits)), '[1,1000]');
  });

  it('rejects excessive nesting, and does not count brackets in strings', () => {
    assert.equal(codeOf(nested(clientJsonLimits.depth)), undefined);
    assert.equal(codeOf(nested(clientJsonLimits.depth + 1)), 'M_BAD_JSON');
    assert.equal(codeOf(nested(serverJsonLimits.depth), serverJsonLimits), undefined);
    assert.equal(codeOf(nested(serverJsonLimits.depth + 1), serverJsonLimits), 'M_BAD_JSON');
    assert.equal(codeOf(nested(1_000_000)), 'M_BAD_JSON');
    for (const text of ['['.repeat(500), `\\"${'{'.repeat(500)}`, `${'{'.repeat(500)}\\\\`]) {
      assert.equal(codeOf(Buffer.from(`{"a":"${text}","b":[[]]}`)), undefined, text);
    }
  });

  it('accepts many brackets that are not nested', () => {
    assert.equal(codeOf(Buffer.from(`[${'[],{},'.repeat(1000)}1]`)), undefined);
  });

  it('rejects __proto__ keys from clients, also when escaped, and accepts them from servers', () => {
    for (const key of ['__proto__', '\\u005f_proto__', '__pr\\u006fto__']) {
      const bytes = Buffer.from(`{"a":[{"${key}":{"admin":true}}]}`);
      assert.equal(codeOf(bytes), 'M_BAD_JSON', key);
      assert.equal(codeOf(bytes, serverJsonLimits), undefined, key);
    }
    assert.equal(codeOf(Buffer.from('{"body":"__proto__"}')), undefined);
    assert.equal(({} as Record<string, unknown>)['admin'], undefined);
  });

  it('rejects lone surrogates in values and keys', () => {
    assert.equal(codeOf(Buffer.from('["\\ud83d\\ude00"]')), undefined);
    assert.equal(codeOf(Buffer.from('["\\ud83d"]')), 'M_BAD_JSON');
    assert.equal(codeOf(Buffer.from('{"\\ude00":1}')), 'M_BAD_JSON');
    assert.equal(codeOf(Buffer.from('["\\ud83d"]'), serverJsonLimits), 'M_BAD_JSON');
  });

  it('rejects invalid UTF-8 with M_NOT_JSON', () => {
    assert.equal(codeOf(Buffer.from([0x22, 0xc3, 0x28, 0x22])), 'M_NOT_JSON');
    assert.equal(codeOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 'M_NOT_JSON');
    assert.equal(codeOf(Buffer.from('')), 'M_NOT_JSON');
  });
});

describe('parseServerBody', () => {
  const deep = (levels: number) => `{"a":"}]\\"","b":${'['.repeat(levels)}${']'.repeat(levels)}}`;
  const transaction = (...pdus: string[]) => Buffer.from(`{"edus":[{"x":[1.0]}],"pdus":[${pdus.join(',')}]}`);

  it('replaces only items that are nested too deeply by null, and returns the whole received text', () => {
    const body = transaction('{"n":1}', deep(5_000), deep(900), deep(20_000));
    const { value, text } = parseServerBody(body);
    const { pdus, edus } = value as { pdus: unknown[]; edus: unknown[] };
    assert.deepEqual([pdus.length, pdus[0], pdus[1], pdus[3]], [4, { n: 1 }, null, null]);
    assert.equal(JSON.stringify(pdus[2]), deep(900));
    assert.equal(JSON.stringify(edus), '[{"x":[1.0]}]');
    assert.equal(text, body.toString());
  });

  it('does not change a body without excessive nesting', () => {
    const { value, text } = parseServerBody(transaction(deep(900), deep(990)));
    assert.equal(JSON.stringify(value), transaction(deep(900), deep(990)).toString());
    assert.equal(text, undefined);
  });

  it('rejects deeply nested text that is not JSON', () => {
    for (const text of ['['.repeat(5_000), `{"a":${'['.repeat(5_000)}}`, `${deep(5_000)}}`]) {
      assert.throws(() => parseServerBody(Buffer.from(text)), MatrixError);
    }
  });

  it('returns a value or throws a MatrixError for any input', () => {
    const piece = fc.constantFrom(
      '{"a":',
      '[',
      ']',
      '}',
      '"',
      '\\',
      ',',
      '1.0',
      'null',
      '['.repeat(1_500),
      ']'.repeat(1_500),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        try {
          parseServerBody(Buffer.from(pieces.join('')));
        } catch (error) {
          assert.ok(error instanceof MatrixError, String(error));
        }
      }),
    );
  });
});
