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

test('TimeSlices lets computations that pause at the same time continue in different turns of the event loop', async () => {
  const clock = manualClock();
  const slices = new TimeSlices(clock, 5);
  clock.advance(5);
  let turn = 0;
  let isOver = false;
  const countTurns = () => {
    turn++;
    if (!isOver) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const turns: number[] = [];
  const pauses = [1, 2, 3].map(async () => {
    await slices.pauseIfDue();
    turns.push(turn);
  });
  await Promise.all(pauses);
  isOver = true;
  assert.equal(new Set(turns).size, 3, `${turns}`);
});
