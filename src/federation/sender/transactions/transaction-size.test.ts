import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxEdus, maxPdus } from '../../transaction-limits.ts';
import { TransactionSize } from './transaction-size.ts';

test('TransactionSize halves its limit for each refused transaction, down to one item, and doubles it for each accepted transaction, up to the maximum', () => {
  const size = new TransactionSize();
  assert.equal(size.limit, maxPdus + maxEdus);
  for (const [count, left] of [
    [150, 75],
    [75, 37],
    [3, 1],
    [2, 1],
  ] as const) {
    assert.equal(size.refused(count), 'divide');
    assert.equal(size.limit, left);
  }
  assert.equal(size.refused(1), 'leave out');
  const limits: number[] = [];
  for (let accepted = 0; accepted < 9; accepted++) {
    size.acknowledged();
    limits.push(size.limit);
  }
  assert.deepEqual(limits, [2, 4, 8, 16, 32, 64, 128, 150, 150]);
});

test('TransactionSize waits after five refused single items in a row', () => {
  const size = new TransactionSize();
  const refuseItem = () => size.refused(1);
  assert.deepEqual(Array.from({ length: 6 }, refuseItem), [
    ...Array<string>(4).fill('leave out'),
    'wait',
    'leave out',
  ]);
  size.acknowledged();
  assert.deepEqual(Array.from({ length: 4 }, refuseItem), Array<string>(4).fill('leave out'));
  // A refused transaction with several items is divided, and does not count as a refused single item.
  assert.equal(size.refused(2), 'divide');
  assert.equal(refuseItem(), 'wait');
});
