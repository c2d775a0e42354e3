import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { verifyInBackground } from './index.ts';

test('verifyInBackground returns for each signature, in order, whether it is valid', async () => {
  const [mine, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
  const isValid = (index: number) => index % 3 === 0;
  const signatures = Array.from({ length: 100 }, (_, index) => {
    const text = `text ${index}: ü`;
    const signature = sign(null, Buffer.from(text), mine.privateKey);
    if (index % 3 === 1) return { key: other.publicKey, text, signature };
    return { key: mine.publicKey, text, signature: index % 3 === 2 ? signature.subarray(index) : signature };
  });
  assert.deepEqual(
    await verifyInBackground(signatures),
    signatures.map((_, index) => isValid(index)),
  );
  assert.deepEqual(await verifyInBackground([]), []);
});
