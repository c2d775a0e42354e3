import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { BackgroundSigner } from './index.ts';

test('signatures are those of the key, in the order of the texts, however many there are', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signer = new BackgroundSigner(privateKey);
  const check = async (count: number) => {
    const texts = Array.from({ length: count }, (_, index) => `text ${index} of ${count}: ü`);
    const signatures = await signer.sign(texts);
    assert.equal(signatures.length, count);
    for (const [index, text] of texts.entries()) {
      const bytes = Buffer.from(signatures[index] ?? '', 'base64');
      assert.ok(verify(null, Buffer.from(text), publicKey, bytes), text);
      assert.doesNotMatch(signatures[index] ?? '', /=/);
    }
  };
  await Promise.all([0, 1, 2, 3, 50, 5, 200].map(check));
  await signer.close();
  await check(10);
  await signer.close();
});
