import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sizeOfJson } from './index.ts';

describe('sizeOfJson', () => {
  it('counts long names of members, and the names of an object with many members', () => {
    assert.ok(sizeOfJson({ ['x'.repeat(60_000)]: 1 }) >= 60_000);
    const names = Array.from({ length: 10_000 }, (_, index) => [`a${index}`, 1]);
    assert.ok(sizeOfJson(Object.fromEntries(names)) >= 10_000 * 40);
  });

  it('does not count short names in an object with few members, because objects share such names', () => {
    assert.equal(sizeOfJson({ msgtype: 'm.text' }), sizeOfJson({ a: 'm.text' }));
  });

  it('counts strings and lists', () => {
    assert.ok(sizeOfJson({ body: 'x'.repeat(60_000) }) >= 60_000);
    assert.ok(sizeOfJson(Array(1_000).fill('a')) >= 1_000 * 40);
  });
});
