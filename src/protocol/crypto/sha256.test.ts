import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sha256, sha256Url } from './sha256.ts';

test('the two alphabets of a hash', () => {
  assert.equal(sha256(''), '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU');
  assert.equal(sha256Url(''), '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU');
});
