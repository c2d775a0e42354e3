import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256Base64, sha256Base64Url } from './sha256.ts';

test('sha256Base64 and sha256Base64Url encode a hash in the two base64 alphabets', () => {
  assert.equal(sha256Base64(''), '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU');
  assert.equal(sha256Base64Url(''), '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU');
});
