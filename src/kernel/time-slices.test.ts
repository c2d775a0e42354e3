import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { TimeSlices } from './time-slices.ts';

test('a slice lasts its milliseconds; then others come first, and another one begins', async () => {
  const clock = manualClock();
  const slices = new TimeSlices(clock, 5);
  assert.equal(slices.rest(), undefined);
  clock.advance(4);
  assert.equal(slices.rest(), undefined);
  clock.advance(1);
  const order: string[] = [];
  setImmediate(() => order.push('others'));
  const rest = slices.rest();
  assert.ok(rest);
  await rest;
  order.push('this');
  assert.deepEqual(order, ['others', 'this']);
  assert.equal(slices.rest(), undefined);
  clock.advance(5);
  assert.ok(slices.rest());
});
