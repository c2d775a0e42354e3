import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { MatrixError } from '../../protocol/index.ts';
import { RateLimiter } from './index.ts';

describe('RateLimiter', () => {
  it('allows a burst, then one further action for each action that has drained from the bucket', () => {
    const clock = manualClock();
    const limiter = new RateLimiter({ per_second: 2, burst_count: 3 }, clock);
    for (let i = 0; i < 3; i++) limiter.take('a');
    assert.throws(
      () => limiter.take('a'),
      (error: unknown) =>
        error instanceof MatrixError &&
        error.status === 429 &&
        error.errcode === 'M_LIMIT_EXCEEDED' &&
        error.extra['retry_after_ms'] === 500 &&
        error.headers['Retry-After'] === '1',
    );
    limiter.take('b');
    clock.advance(499);
    assert.equal(limiter.tryTake('a'), 1);
    clock.advance(1);
    assert.equal(limiter.tryTake('a'), 0);
    assert.equal(limiter.tryTake('a'), 500);
  });

  it('check() rejects an action above the limit, and counts no action', () => {
    const limiter = new RateLimiter({ per_second: 1, burst_count: 1 }, manualClock());
    limiter.check('a');
    limiter.check('a');
    limiter.take('a');
    assert.throws(() => limiter.check('a'), MatrixError);
  });

  it('reports a finite wait when the rate is zero', () => {
    const limiter = new RateLimiter({ per_second: 0, burst_count: 1 }, manualClock());
    limiter.take('a');
    assert.equal(limiter.tryTake('a'), 24 * 60 * 60 * 1000);
  });

  it('applies a new limit at run time', () => {
    const limiter = new RateLimiter({ per_second: 1, burst_count: 1 }, manualClock());
    limiter.take('a');
    limiter.configure({ per_second: 1, burst_count: 2 });
    limiter.take('a');
    assert.equal(limiter.tryTake('a'), 1000);
  });

  it('bounds the number of buckets and drops empty buckets first', () => {
    const clock = manualClock();
    const limiter = new RateLimiter({ per_second: 1, burst_count: 1000 }, clock, 100);
    limiter.take('busy', 1000);
    for (let i = 0; i < 99; i++) limiter.take(`idle ${i}`);
    clock.advance(10_000);
    limiter.take('new');
    assert.equal(limiter.size, 2);
    assert.ok(limiter.tryTake('busy', 1000) > 0);
    for (let i = 0; i < 1000; i++) limiter.take(`flood ${i}`, 1000);
    assert.ok(limiter.size <= 100);
  });

  it('never allows more actions than the burst plus the rate times the time', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0.01, max: 50, noNaN: true }),
        fc.array(fc.integer({ min: 0, max: 2000 }), { maxLength: 100 }),
        (burst, rate, pauses) => {
          const clock = manualClock();
          const limiter = new RateLimiter({ per_second: rate, burst_count: burst }, clock);
          let taken = 0;
          for (const pause of pauses) {
            clock.advance(pause);
            if (limiter.tryTake('a') === 0) taken++;
          }
          assert.ok(taken <= burst + (clock.monotonic() / 1000) * rate + 1e-6);
        },
      ),
    );
  });
});
