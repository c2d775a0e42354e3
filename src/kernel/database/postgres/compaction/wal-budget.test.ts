import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../../../test/support/clocks/manual-clock.ts';
import { WalBudget } from './wal-budget.ts';

it('WalBudget lets work write the bytes of one minute to the write-ahead log at once, and then at most that much per minute', async () => {
  const clock = manualClock();
  const { signal } = new AbortController();
  const budget = new WalBudget(clock, 600);
  await budget.spend(600, signal);
  let isDone = false;
  const waiting = budget.spend(300, signal).then(() => {
    isDone = true;
  });
  await clock.advance(29_000);
  assert.equal(isDone, false);
  await clock.advance(1_000);
  await waiting;
  await clock.advance(60_000);
  await budget.spend(0, signal);
  await budget.spend(600, signal);
});

it('WalBudget does not delay work whose signal is aborted', async () => {
  const budget = new WalBudget(manualClock(), 600);
  await budget.spend(1_000_000, AbortSignal.abort());
});
