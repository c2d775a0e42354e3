import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { UnverifiedBodies } from './unverified-bodies.ts';

const mebibyte = 1024 * 1024;
const limitExceeded = { errcode: 'M_LIMIT_EXCEEDED' };

describe('UnverifiedBodies', () => {
  it('holds at most 32 MiB of bodies from one IP address and 128 MiB in total by default', () => {
    const bodies = new UnverifiedBodies(manualClock());
    const held = [1, 2, 3, 4].map((number) => bodies.open(`192.0.2.${number}`));
    for (const body of held) {
      body.add(32 * mebibyte);
      if (body === held[0]) assert.throws(() => body.add(1), limitExceeded);
    }
    assert.equal(bodies.total, 128 * mebibyte);
    const another = bodies.open('192.0.2.5');
    assert.throws(() => another.add(1), limitExceeded);
    held[0]!.release();
    another.add(1);
    assert.equal(bodies.total, 96 * mebibyte + 1);
  });
});
