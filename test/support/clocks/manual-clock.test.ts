import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from './manual-clock.ts';

const turn = () => new Promise(setImmediate);

test('ManualClock runs timers in the order in which they become due, each at its time', () => {
  const clock = manualClock(0);
  const ran: [string, number][] = [];
  const run = (name: string) => () => ran.push([name, clock.now()]);
  clock.setTimer(200, run('late'));
  clock.setTimer(100, run('early'));
  clock.setTimer(300, run('cancelled')).cancel();
  clock.setTimer(400, run('not due'));
  clock.advance(350);
  assert.deepEqual(ran, [
    ['early', 100],
    ['late', 200],
  ]);
});

test('ManualClock runs a timer in the next turn of the event loop that is due when it is set', async () => {
  const clock = manualClock(0);
  const ran: string[] = [];
  clock.setTimer(0, () => ran.push('due'));
  clock.setTimer(-5, () => ran.push('overdue'));
  clock.setTimer(0, () => ran.push('cancelled')).cancel();
  clock.setTimer(1, () => ran.push('not due'));
  assert.deepEqual(ran, []);
  await turn();
  assert.deepEqual(ran, ['due', 'overdue']);
  clock.advance(1);
  assert.deepEqual(ran, ['due', 'overdue', 'not due']);
});
