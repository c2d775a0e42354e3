import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { loadedSodium, signingByPlatform, signingBySodium, signingWith } from './sign-text.ts';

test('signatures are those of the platform, whoever makes them', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const sodium = loadedSodium();
  assert.ok(sodium, 'there is a build of the library for this machine');
  const ways = [signingWith(privateKey), signingBySodium(sodium, privateKey), signingByPlatform(privateKey)];
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const right = sign(null, Buffer.from(text), privateKey).toString('base64').replace(/=+$/, '');
      for (const way of ways) assert.equal(way(text), right);
    }),
  );
});
