import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PositionCounter } from './position-counter.ts';

test('PositionCounter moves current up to a position when the position and all lower positions have settled', () => {
  const advances: number[] = [];
  const delivered: number[] = [];
  const counter = new PositionCounter(10, 1_000, (current) => advances.push(current));
  const [a, b, c] = [counter.reserve('test', 0), counter.reserve('test', 0), counter.reserve('test', 0)];
  assert.deepEqual([a.position, b.position, c.position], [11, 12, 13]);
  c.complete((position) => delivered.push(position));
  assert.equal(counter.current, 10);
  a.complete((position) => delivered.push(position));
  assert.equal(counter.current, 11);
  b.abandon();
  assert.equal(counter.current, 13);
  assert.deepEqual(delivered, [11, 13]);
  assert.deepEqual(advances, [11, 13]);
});

test('PositionCounter settles a position only once', () => {
  const counter = new PositionCounter(0, 1_000_000, () => undefined);
  const delivered: number[] = [];
  const reservation = counter.reserve('test', 0);
  reservation.complete((position) => delivered.push(position));
  reservation.complete((position) => delivered.push(position));
  reservation.abandon();
  assert.deepEqual(delivered, [1]);
  assert.equal(counter.current, 1);
});

test('PositionCounter finishes a delivery before it delivers a position that the listener has reserved and completed meanwhile', () => {
  const counter = new PositionCounter(0, 1_000_000, () => undefined);
  const delivered: number[] = [];
  counter.reserve('test', 0).complete((position) => {
    delivered.push(position);
    counter.reserve('test', 0).complete((next) => delivered.push(next));
  });
  assert.deepEqual(delivered, [1, 2]);
});

test('PositionCounter moves current up to its limit, and over the settled positions above it when the limit is raised', () => {
  const advances: number[] = [];
  const delivered: number[] = [];
  const counter = new PositionCounter(0, 2, (current) => advances.push(current));
  for (let number = 0; number < 5; number++)
    counter.reserve('test', 0).complete((position) => delivered.push(position));
  assert.deepEqual([counter.current, counter.next], [2, 6]);
  counter.raiseLimit(4);
  assert.equal(counter.current, 4);
  counter.raiseLimit(1_000);
  assert.deepEqual(delivered, [1, 2, 3, 4, 5]);
  assert.deepEqual(advances, [1, 2, 4, 5]);
});

test('PositionCounter delivers every completed position once and in order, in whatever order they settle', () => {
  const plan = fc.array(fc.record({ order: fc.double({ noNaN: true }), completes: fc.boolean() }), {
    maxLength: 3_000,
  });
  fc.assert(
    fc.property(plan, (steps) => {
      const counter = new PositionCounter(0, 1_000_000, () => undefined);
      const delivered: number[] = [];
      const pending = steps.map((step) => ({ ...step, reservation: counter.reserve('test', 0) }));
      const expected = pending
        .filter(({ completes }) => completes)
        .map(({ reservation }) => reservation.position);
      for (const { completes, reservation } of pending.toSorted((x, y) => x.order - y.order)) {
        if (completes) reservation.complete((position) => delivered.push(position));
        else reservation.abandon();
      }
      assert.deepEqual(delivered, expected);
      assert.equal(counter.current, steps.length);
    }),
    { numRuns: 50 },
  );
});
