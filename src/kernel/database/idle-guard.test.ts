import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { TransactionTimeout } from './errors.ts';
import { IdleGuard } from './idle-guard.ts';

test('IdleGuard rejects with TransactionTimeout when the work sends no statement', async () => {
  const clock = manualClock();
  const watched = new IdleGuard(clock, 1_000).watch(new Promise(() => {}));
  clock.advance(1_000);
  await assert.rejects(watched, TransactionTimeout);
});

test('IdleGuard counts idle time from the end of a slow statement', async () => {
  const clock = manualClock();
  const guard = new IdleGuard(clock, 1_000);
  let state = 'watched';
  const watched = guard.watch(new Promise(() => {})).catch(() => {
    state = 'aborted';
  });
  const statement = Promise.withResolvers<void>();
  const during = guard.during(() => statement.promise);
  clock.advance(5_500);
  statement.resolve();
  await during;
  clock.advance(999);
  await Promise.resolve();
  assert.equal(state, 'watched');
  clock.advance(1_001);
  await watched;
  assert.equal(state, 'aborted');
});

test('IdleGuard resolves with the result of the work', async () => {
  assert.equal(await new IdleGuard(manualClock(), 1).watch(Promise.resolve(7)), 7);
});
