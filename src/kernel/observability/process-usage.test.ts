import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { ProcessReading } from './process-usage.ts';

test('ProcessReading measures the event loop lag again when the last value is four seconds old, and returns no lag at the first reading after a minute without one', () => {
  const clock = manualClock();
  const reading = new ProcessReading({ clock });
  try {
    assert.equal(reading.read().lag, undefined);
    const { lag } = reading.read();
    assert.ok(lag);
    clock.advance(3_999);
    assert.equal(reading.read().lag, lag);
    clock.advance(1);
    assert.notEqual(reading.read().lag, lag);
    clock.advance(60_000);
    assert.equal(reading.read().lag, undefined);
  } finally {
    reading.stop();
  }
});
