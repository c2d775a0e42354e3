import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { VerifyKey } from './ed25519.ts';
import { readSigningKeys, writeSigningKeys } from './signing-key-file.ts';

const seed = 'YJDBA9Xnr2sVqXD9Vj7XVUnmFZcZrlw8Md7kMW+3XA1';

test('readSigningKeys reads several keys in order, whatever the white space around and between the words of a line', () => {
  const keys = readSigningKeys(`ed25519 a_AbCd ${seed}\r\n\n  ed25519\tauto  ${seed}=\n`);
  assert.deepEqual(
    keys.map((key) => key.keyId),
    ['ed25519:a_AbCd', 'ed25519:auto'],
  );
  assert.equal(keys[0]!.publicKey.base64, keys[1]!.publicKey.base64);
});

test('writeSigningKeys writes again the file that readSigningKeys has read', () => {
  const file = `ed25519 a_AbCd ${newSigningKey('a').exportSeed()}\ned25519 b ${newSigningKey('b').exportSeed()}\n`;
  assert.equal(writeSigningKeys(readSigningKeys(file)), file);
});

test('readSigningKeys names the malformed line and does not quote it', () => {
  const wrong: readonly (readonly [line: string, message: RegExp])[] = [
    [`ed25519 ${seed}`, /^Line 2: expected/],
    [`ed25519 a ${seed} more`, /^Line 2: expected/],
    [`rsa a ${seed}`, /^Line 2: the algorithm/],
    [`ed25519 a:b ${seed}`, /^Line 2: the name/],
    [`ed25519 a ${seed}AAAA`, /^Line 2: the seed/],
    [`ed25519 a ${seed.replace('Y', '!')}`, /^Line 2: the seed/],
  ];
  for (const [line, message] of wrong) {
    assert.throws(
      () => readSigningKeys(`ed25519 ok ${seed}\n${line}\n`),
      (error: Error) =>
        error.name === 'SigningKeyFileError' && message.test(error.message) && !error.message.includes(seed),
    );
  }
  assert.throws(() => readSigningKeys('\n \n'), /holds no key/);
});

test('SigningKey makes different keys, signs, and hides its secret in JSON and logs', () => {
  const [one, two] = [newSigningKey('1'), newSigningKey('2')];
  assert.notEqual(one.exportSeed(), two.exportSeed());
  const signature = one.sign('text');
  assert.ok(one.publicKey.verifies('text', signature));
  assert.ok(!two.publicKey.verifies('text', signature));
  assert.ok(!one.publicKey.verifies('other text', signature));
  for (const text of [JSON.stringify({ one }), inspect(one), String(one)]) {
    assert.ok(!text.includes(one.exportSeed()));
  }
});

test('VerifyKey.fromBase64 accepts 32 bytes in either base64 alphabet', () => {
  const key = VerifyKey.fromBase64('XSl0kuyvrXNj6A+7/tkrB9sxSbRi08Of5uRhxOqZtEQ')!;
  assert.equal(key.base64, 'XSl0kuyvrXNj6A+7/tkrB9sxSbRi08Of5uRhxOqZtEQ');
  assert.equal(VerifyKey.fromBase64('XSl0kuyvrXNj6A-7_tkrB9sxSbRi08Of5uRhxOqZtEQ=')?.base64, key.base64);
  for (const text of ['', 'AAAA', '!', `${key.base64}AAAA`])
    assert.equal(VerifyKey.fromBase64(text), undefined);
  for (const signature of ['', 'AAAA', '!', 'A'.repeat(86), 'A'.repeat(88)]) {
    assert.equal(key.verifies('text', signature), false);
  }
});
