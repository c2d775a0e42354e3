import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxEdus, maxPdus } from './transaction.ts';
import { TransactionSize } from './transaction-size.ts';

test('what is refused is divided until one is left, and what is taken grows to the full size again', () => {
  const size = new TransactionSize();
  assert.equal(size.most, maxPdus + maxEdus);
  for (const [count, left] of [
    [150, 75],
    [75, 37],
    [3, 1],
    [2, 1],
  ] as const) {
    assert.equal(size.refused(count), 'divide');
    assert.equal(size.most, left);
  }
  assert.equal(size.refused(1), 'leave out');
  const sizes: number[] = [];
  for (let taken = 0; taken < 9; taken++) {
    size.taken();
    sizes.push(size.most);
  }
  assert.deepEqual(sizes, [2, 4, 8, 16, 32, 64, 128, 150, 150]);
});

test('a server that takes nothing is left alone after five, unless it takes something in between', () => {
  const size = new TransactionSize();
  const refused = () => size.refused(1);
  assert.deepEqual(Array.from({ length: 6 }, refused), [
    ...Array<string>(4).fill('leave out'),
    'wait',
    'leave out',
  ]);
  size.taken();
  assert.deepEqual(Array.from({ length: 4 }, refused), Array<string>(4).fill('leave out'));
  // Nothing was in it but what can be divided.
  assert.equal(size.refused(2), 'divide');
  assert.equal(refused(), 'wait');
});
