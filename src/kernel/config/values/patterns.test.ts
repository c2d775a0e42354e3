import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRegularExpression } from './patterns.ts';

test('isRegularExpression accepts only expressions that can be matched in linear time', () => {
  for (const pattern of ['', '^@.*:example\\.org$', '^(a+)+$', '[a-z]{1,9}']) {
    assert.equal(isRegularExpression(pattern), true, pattern);
  }
  for (const pattern of ['(a)\\1', '(?=a)b', '(', '[', 'a{2,1}']) {
    assert.equal(isRegularExpression(pattern), false, pattern);
  }
});
