import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MatrixError } from '../../protocol/index.ts';
import { clientJson, parseJson, serverJson } from './json-body.ts';

const nested = (depth: number) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));

function codeOf(bytes: Buffer, limits = clientJson): string | undefined {
  try {
    parseJson(bytes, limits);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof MatrixError, String(error));
    return error.errcode;
  }
}

describe('parseJson', () => {
  it('reads what JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('__proto__') && !/\\ud[89a-f]/i.test(text));
        assert.deepEqual(parseJson(Buffer.from(text), clientJson), JSON.parse(text));
      }),
    );
  });

  it('answers anything with a value or an error of the protocol', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        assert.ok([undefined, 'M_BAD_JSON', 'M_NOT_JSON'].includes(codeOf(Buffer.from(bytes))));
      }),
    );
  });

  it('keeps numbers of other servers as they are written, for signatures cover them', () => {
    const text = '{"a":1.0,"b":[1e3,-0,12345678901234567890],"c":5}';
    assert.equal(JSON.stringify(parseJson(Buffer.from(text), serverJson)), text);
    assert.equal(JSON.stringify(parseJson(Buffer.from('[1.0,1e3]'), clientJson)), '[1,1000]');
  });

  it('bounds nesting, brackets in strings not counted', () => {
    assert.equal(codeOf(nested(clientJson.depth)), undefined);
    assert.equal(codeOf(nested(clientJson.depth + 1)), 'M_BAD_JSON');
    assert.equal(codeOf(nested(serverJson.depth), serverJson), undefined);
    assert.equal(codeOf(nested(serverJson.depth + 1), serverJson), 'M_BAD_JSON');
    assert.equal(codeOf(nested(1_000_000)), 'M_BAD_JSON');
    for (const text of ['['.repeat(500), `\\"${'{'.repeat(500)}`, `${'{'.repeat(500)}\\\\`]) {
      assert.equal(codeOf(Buffer.from(`{"a":"${text}","b":[[]]}`)), undefined, text);
    }
  });

  it('takes many brackets beside each other', () => {
    assert.equal(codeOf(Buffer.from(`[${'[],{},'.repeat(1000)}1]`)), undefined);
  });

  it('refuses prototype keys of clients, however they are written, and not of servers', () => {
    for (const key of ['__proto__', '\\u005f_proto__', '__pr\\u006fto__']) {
      const bytes = Buffer.from(`{"a":[{"${key}":{"admin":true}}]}`);
      assert.equal(codeOf(bytes), 'M_BAD_JSON', key);
      assert.equal(codeOf(bytes, serverJson), undefined, key);
    }
    assert.equal(codeOf(Buffer.from('{"body":"__proto__"}')), undefined);
    assert.equal(({} as Record<string, unknown>)['admin'], undefined);
  });

  it('refuses halves of surrogate pairs in values and keys', () => {
    assert.equal(codeOf(Buffer.from('["\\ud83d\\ude00"]')), undefined);
    assert.equal(codeOf(Buffer.from('["\\ud83d"]')), 'M_BAD_JSON');
    assert.equal(codeOf(Buffer.from('{"\\ude00":1}')), 'M_BAD_JSON');
    assert.equal(codeOf(Buffer.from('["\\ud83d"]'), serverJson), 'M_BAD_JSON');
  });

  it('refuses what is no UTF-8', () => {
    assert.equal(codeOf(Buffer.from([0x22, 0xc3, 0x28, 0x22])), 'M_NOT_JSON');
    assert.equal(codeOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 'M_NOT_JSON');
    assert.equal(codeOf(Buffer.from('')), 'M_NOT_JSON');
  });
});
