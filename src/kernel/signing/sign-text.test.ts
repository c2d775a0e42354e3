import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { loadedSodium, signingByPlatform, signingBySodium, signingWith } from './sign-text.ts';

test('signingWith and its two implementations make the same signatures as the platform', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const sodium = loadedSodium();
  assert.ok(sodium, 'sodium-native has a build for this machine');
  const implementations = [
    signingWith(privateKey),
    signingBySodium(sodium, privateKey),
    signingByPlatform(privateKey),
  ];
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), (text) => {
      const expected = sign(null, Buffer.from(text), privateKey).toString('base64').replace(/=+$/, '');
      for (const signText of implementations) assert.equal(signText(text), expected);
    }),
  );
});
