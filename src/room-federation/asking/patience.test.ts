import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { Patience } from './patience.ts';

const room = '!r:a.example';
const [a, b] = ['a.example', 'b.example'] as const;

test('a server that does not help is left alone for longer each time, until it helps; in that room only', () => {
  const clock = manualClock();
  const patience = new Patience(clock);
  const pauses: number[] = [];
  for (let times = 0; times < 9; times++) {
    patience.failed(room, a);
    const until = patience.pausedUntil(room, a) ?? 0;
    pauses.push((until - clock.now()) / 1_000);
    assert.equal(patience.waitsUntil(room, a), until);
    clock.advance(until - clock.now());
    assert.equal(patience.pausedUntil(room, a), undefined);
  }
  assert.deepEqual(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
  patience.failed(room, a);
  assert.equal(patience.pausedUntil('!other:a.example', a), undefined);
  assert.equal(patience.pausedUntil(room, b), undefined);
  patience.helped(room, a);
  assert.equal(patience.pausedUntil(room, a), undefined);
});

test('a server whose events take long waits for as long, and may be asked all the same', () => {
  const clock = manualClock();
  const patience = new Patience(clock);
  patience.took(room, a, 1_999);
  assert.equal(patience.waitsUntil(room, a), undefined);
  patience.took(room, a, 30_000);
  patience.helped(room, a);
  assert.equal(patience.waitsUntil(room, a), clock.now() + 30_000);
  assert.equal(patience.pausedUntil(room, a), undefined);
  clock.advance(30_000);
  assert.equal(patience.waitsUntil(room, a), undefined);
});
