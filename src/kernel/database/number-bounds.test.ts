import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { eventually } from '../../../test/clients/eventually.ts';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { DatabaseClosed } from './errors.ts';
import { NumberBounds } from './number-bounds.ts';

/**
 * Opens bounds with one bound that has to be raised to 20. Returns them with the lines that they log, and with
 * functions for the number of writes and the value of the bound.
 */
function boundsWith(write: () => Promise<void>) {
  const clock = manualClock();
  const logged: string[] = [];
  const log = pino({ level: 'error' }, { write: (line) => void logged.push(line) });
  let writes = 0;
  let value = 10;
  const bounds: NumberBounds = new NumberBounds({
    async batch() {
      const due = bounds.due();
      writes++;
      await write();
      due?.onDisk();
    },
    clock,
    log,
  });
  bounds.add({
    name: 'things',
    get due() {
      return value < 20 ? 20 : undefined;
    },
    raised: (raised) => {
      value = raised;
    },
  });
  return { bounds, clock, logged, writes: () => writes, value: () => value };
}

test('NumberBounds logs that a raise in the background has failed, and raises again after a second', async () => {
  let isDiskFull = true;
  const { bounds, clock, logged, value } = boundsWith(async () => {
    if (isDiskFull) throw new Error('the disk is full');
  });
  bounds.raiseInBackground();
  await eventually('the log line', () => logged.length === 1);
  assert.match(logged[0]!, /The bounds of assigned numbers could not be raised/);
  assert.match(logged[0]!, /the disk is full/);
  isDiskFull = false;
  clock.advance(1_000);
  await eventually('the raise', () => value() === 20);
  assert.equal(logged.length, 1);
});

test('NumberBounds raises bounds in the background with one write at a time', async () => {
  const { promise: written, resolve: write } = Promise.withResolvers<void>();
  const { bounds, writes, value } = boundsWith(() => written);
  for (let call = 0; call < 5; call++) bounds.raiseInBackground();
  assert.equal(writes(), 1);
  write();
  await eventually('the raise', () => value() === 20);
  bounds.raiseInBackground();
  assert.equal(writes(), 1);
});

test('NumberBounds neither logs nor repeats a raise that a closed database rejects', async () => {
  const { bounds, clock, logged, writes } = boundsWith(async () => {
    throw new DatabaseClosed('the database is closed');
  });
  bounds.raiseInBackground();
  await new Promise(setImmediate);
  clock.advance(10_000);
  assert.equal(writes(), 1);
  assert.deepEqual(logged, []);
});
