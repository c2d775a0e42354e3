import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { TimeSlices } from './time-slices.ts';

test('TimeSlices lets other work of the event loop run when a slice is used up, then begins another slice', async () => {
  const clock = manualClock();
  const slices = new TimeSlices(clock, 5);
  assert.equal(slices.pauseIfDue(), undefined);
  clock.advance(4);
  assert.equal(slices.pauseIfDue(), undefined);
  clock.advance(1);
  const order: string[] = [];
  setImmediate(() => order.push('other work'));
  const pause = slices.pauseIfDue();
  assert.ok(pause);
  await pause;
  order.push('this');
  assert.deepEqual(order, ['other work', 'this']);
  assert.equal(slices.pauseIfDue(), undefined);
  clock.advance(5);
  assert.ok(slices.pauseIfDue());
});
