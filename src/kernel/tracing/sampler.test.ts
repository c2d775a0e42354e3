import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { systemRandomness } from '../randomness.ts';
import { samplerOf } from './sampler.ts';

describe('samplerOf', () => {
  it('records all traces for const: true and the probability 1, none for false and 0, and a number per second for ratelimiting', () => {
    const clock = manualClock();
    const count = (settings: Parameters<typeof samplerOf>[0]) => {
      const sampler = samplerOf(settings, clock, systemRandomness);
      return () => Array.from({ length: 100 }, sampler).filter(Boolean).length;
    };
    assert.equal(count({ type: 'const', records: true })(), 100);
    assert.equal(count({ type: 'const', records: false })(), 0);
    assert.equal(count({ type: 'probabilistic', probability: 0 })(), 0);
    assert.equal(count({ type: 'probabilistic', probability: 1 })(), 100);
    const limited = count({ type: 'ratelimiting', perSecond: 3 });
    assert.deepEqual([limited(), limited()], [3, 0]);
    clock.advance(1_000);
    assert.equal(limited(), 3);
    assert.equal(count({ type: 'ratelimiting', perSecond: 0 })(), 0);
  });
});
