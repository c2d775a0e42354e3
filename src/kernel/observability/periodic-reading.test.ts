import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { PeriodicReading } from './periodic-reading.ts';

describe('PeriodicReading', () => {
  it('reads once in an interval, however often the value is requested', async () => {
    const clock = manualClock();
    let reads = 0;
    const reading = new PeriodicReading(clock, 60_000, async () => {
      reads += 1;
      return reads;
    });
    const values = await Promise.all(Array.from({ length: 10 }, () => reading.value()));
    assert.deepEqual([...new Set(values)], [1]);
    await clock.advance(59_000);
    assert.equal(await reading.value(), 1);
    await clock.advance(1_000);
    assert.equal(await reading.value(), 2);
  });

  it('returns the last value when a later read fails', async () => {
    const clock = manualClock();
    let fails = false;
    const reading = new PeriodicReading(clock, 1_000, async () => {
      if (fails) throw new Error('no database');
      return 'first';
    });
    assert.equal(await reading.value(), 'first');
    fails = true;
    await clock.advance(1_000);
    assert.equal(await reading.value(), 'first');
  });

  it('returns the last value after two seconds while a later read is still running', async () => {
    const clock = manualClock();
    let reads = 0;
    const read = () => (reads++ === 0 ? Promise.resolve('first') : new Promise<string>(() => {}));
    const reading = new PeriodicReading(clock, 1_000, read);
    assert.equal(await reading.value(), 'first');
    await clock.advance(1_000);
    const value = reading.value();
    await clock.advance(2_000);
    assert.equal(await value, 'first');
  });

  it('returns undefined after two seconds while the first read is still running', async () => {
    const clock = manualClock();
    const reading = new PeriodicReading<string>(clock, 1_000, () => new Promise(() => {}));
    const value = reading.value();
    await clock.advance(2_000);
    assert.equal(await value, undefined);
  });
});
