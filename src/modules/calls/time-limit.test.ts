import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callWithTimeLimit, isTimeLimit } from './time-limit.ts';

describe('callWithTimeLimit', () => {
  it('returns the result or the promise of the function, and throws its error', async () => {
    assert.equal(
      callWithTimeLimit(() => 5, 60_000),
      5,
    );
    assert.throws(
      () =>
        callWithTimeLimit(() => {
          throw new TypeError('own');
        }, 60_000),
      { name: 'TypeError', message: 'own' },
    );
    const later = callWithTimeLimit(async () => {
      await undefined;
      return 'later';
    }, 60_000);
    assert.equal(await later, 'later');
    const nested = callWithTimeLimit(() => callWithTimeLimit(() => 'inner', 60_000), 60_000);
    assert.equal(nested, 'inner');
  });

  it('interrupts an endless loop and a regular expression with catastrophic backtracking', () => {
    const endless: (() => unknown)[] = [
      () => {
        for (;;);
      },
      () => /^(a+)+$/.test(`${'a'.repeat(60)}b`),
    ];
    for (const work of endless) assert.throws(() => callWithTimeLimit(work, 20), isTimeLimit);
  });
});
