import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeBase64, encodeBase64 } from './base64.ts';

test('encodeBase64 and decodeBase64 convert the examples of the specification', () => {
  const examples = {
    '': '',
    f: 'Zg',
    fo: 'Zm8',
    foo: 'Zm9v',
    foob: 'Zm9vYg',
    fooba: 'Zm9vYmE',
    foobar: 'Zm9vYmFy',
  };
  for (const [text, encoded] of Object.entries(examples)) {
    assert.equal(encodeBase64(Buffer.from(text)), encoded);
    assert.deepEqual(decodeBase64(encoded), Buffer.from(text));
  }
});

test('decodeBase64 reads both alphabets, padded or not', () => {
  const bytes = Uint8Array.from([0xfb, 0xef, 0xff, 0xfe]);
  assert.equal(encodeBase64(bytes), '++///g');
  for (const text of ['++///g', '++///g==', '--___g', '--___g==']) {
    assert.deepEqual(decodeBase64(text), Buffer.from(bytes));
  }
});

test('decodeBase64 refuses malformed base64', () => {
  for (const text of [
    'A',
    'AAAAA',
    'A=',
    'AA=',
    'AAA==',
    '=',
    'AA AA',
    'AA\n',
    '+-AA',
    'Ä',
    'AAAA=',
    'AA==AA==',
  ]) {
    assert.equal(decodeBase64(text), undefined, JSON.stringify(text));
  }
});

test('decodeBase64 inverts encodeBase64', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      assert.deepEqual(decodeBase64(encodeBase64(bytes)), Buffer.from(bytes));
      assert.deepEqual(decodeBase64(Buffer.from(bytes).toString('base64url')), Buffer.from(bytes));
    }),
  );
});
