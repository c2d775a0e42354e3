import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FactBuffer } from './fact-buffer.ts';

const fact = (position: number) => ({ position });
const factsAt = (...positions: number[]) => positions.map(fact);

function open(current: number, positions: readonly number[], maxFacts?: number) {
  const buffer = new FactBuffer<{ position: number }>({ current }, maxFacts);
  for (const position of positions) buffer.add(fact(position));
  return buffer;
}

describe('FactBuffer', () => {
  it('returns the facts of a range once, and later facts afterwards', () => {
    const buffer = open(10, [11, 13, 14]);
    assert.deepEqual(buffer.take(10, 13), factsAt(11, 13));
    assert.deepEqual(buffer.untakenFacts, factsAt(14));
    buffer.add(fact(20));
    assert.deepEqual(buffer.take(13, 20), factsAt(14, 20));
    assert.deepEqual(buffer.take(20, 20), []);
  });

  it('returns undefined for a range that begins before the position at which the buffer was opened', () => {
    const buffer = open(10, [11, 12]);
    assert.equal(buffer.take(9, 11), undefined);
    assert.deepEqual(buffer.take(11, 12), factsAt(12));
  });

  it('returns undefined for a range that was partly taken before, and still returns the facts after that range', () => {
    const buffer = open(10, [11, 12]);
    buffer.take(10, 11);
    assert.equal(buffer.take(10, 12), undefined);
    buffer.add(fact(13));
    assert.deepEqual(buffer.take(12, 13), factsAt(13));
  });

  it('drops all facts when they exceed the maximum of the buffer, and returns only later facts', () => {
    const buffer = open(0, [1, 2, 3, 4], 3);
    assert.deepEqual(buffer.untakenFacts, []);
    buffer.add(fact(4));
    buffer.add(fact(5));
    assert.equal(buffer.take(0, 5), undefined);
    const full = open(0, [1, 2, 3, 4], 3);
    // Two facts can have one position.
    full.add(fact(4));
    full.add(fact(5));
    assert.deepEqual(full.take(4, 5), factsAt(5));
  });
});
