import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allReady, whenReady } from './when-ready.ts';

describe('whenReady', () => {
  it('returns the result at once for a value', () => {
    assert.equal(
      whenReady(1, (value) => value + 1),
      2,
    );
  });

  it('returns a promise of the result for a promise', async () => {
    const result = whenReady(Promise.resolve(1), (value) => value + 1);
    assert.ok(result instanceof Promise);
    assert.equal(await result, 2);
  });

  it('rejects with the error of the promise, without calling the function', async () => {
    const result = whenReady(Promise.reject(new Error('lost')), () => assert.fail('must not be called'));
    await assert.rejects(async () => result, /lost/);
  });
});

describe('allReady', () => {
  it('returns the values at once when none is a promise', () => {
    assert.deepEqual(allReady([1, 'a', undefined]), [1, 'a', undefined]);
  });

  it('returns a promise of all values when one is a promise', async () => {
    const result = allReady<[number, string]>([1, Promise.resolve('a')]);
    assert.ok(result instanceof Promise);
    assert.deepEqual(await result, [1, 'a']);
  });
});
