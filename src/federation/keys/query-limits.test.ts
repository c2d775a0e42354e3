import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { QueryLimits } from './query-limits.ts';

const limited = { errcode: 'M_LIMIT_EXCEEDED' };

describe('QueryLimits limits queries for the keys of other servers', () => {
  it('limits the number of servers whose keys one IP address requests', () => {
    const clock = manualClock();
    const limits = new QueryLimits(clock);
    for (let count = 0; count < 10; count++) limits.admit('192.0.2.1', 1_000);
    assert.throws(() => limits.admit('192.0.2.1', 0), limited);
    limits.admit('192.0.2.2', 1_000);
    clock.advance(1_000);
    limits.admit('192.0.2.1', 2);
  });

  it('limits the requests to other servers that the queries of one IP address cause, and those that the queries of all addresses cause together', () => {
    const clock = manualClock();
    const limits = new QueryLimits(clock);
    const allowed = (ip: string) =>
      Array.from({ length: 1_000 }, () => limits.mayRequest(ip)).filter(Boolean).length;
    assert.equal(allowed('192.0.2.1'), 400);
    clock.advance(2_000);
    assert.equal(allowed('192.0.2.1'), 1);
    const others = Array.from({ length: 9 }, (_, index) => allowed(`192.0.2.${2 + index}`));
    assert.ok(others.at(-1)! < 400, String(others));
  });

  it('bounds the answers that are sent at the same time, to one IP address and to all addresses together', async () => {
    const limits = new QueryLimits(manualClock());
    const begin = (ip: string) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      limits.beginAnswer(ip, promise);
      return () => resolve(false);
    };
    const ends = Array.from({ length: 64 }, (_, index) => begin(`192.0.2.${Math.floor(index / 8)}`));
    assert.throws(() => begin('192.0.2.9'), limited);
    ends[0]!();
    await new Promise((resolve) => setImmediate(resolve));
    assert.throws(() => begin('192.0.2.1'), limited);
    begin('192.0.2.0');
    assert.throws(() => begin('192.0.2.0'), limited);
  });
});
