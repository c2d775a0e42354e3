import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from './manual-clock.ts';

const nextTurn = () => new Promise(setImmediate);

test('ManualClock runs timers in the order in which they become due, each at its time', () => {
  const clock = manualClock(0);
  const runs: [string, number][] = [];
  const run = (name: string) => () => runs.push([name, clock.now()]);
  clock.setTimer(200, run('late'));
  clock.setTimer(100, run('early'));
  clock.setTimer(300, run('cancelled')).cancel();
  clock.setTimer(400, run('not due'));
  clock.advance(350);
  assert.deepEqual(runs, [
    ['early', 100],
    ['late', 200],
  ]);
});

test('ManualClock runs in the next turn of the event loop a timer that is already due when it is set', async () => {
  const clock = manualClock(0);
  const runs: string[] = [];
  clock.setTimer(0, () => runs.push('due'));
  clock.setTimer(-5, () => runs.push('overdue'));
  clock.setTimer(0, () => runs.push('cancelled')).cancel();
  clock.setTimer(1, () => runs.push('not due'));
  assert.deepEqual(runs, []);
  await nextTurn();
  assert.deepEqual(runs, ['due', 'overdue']);
  clock.advance(1);
  assert.deepEqual(runs, ['due', 'overdue', 'not due']);
});
