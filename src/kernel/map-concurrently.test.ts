import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { mapConcurrently } from './map-concurrently.ts';

describe('mapConcurrently', () => {
  it('works on a bounded number of items at a time and returns the results in order', async () => {
    let [running, maxRunning] = [0, 0];
    const results = await mapConcurrently(Array.from({ length: 50 }).keys(), 4, async (item) => {
      maxRunning = Math.max(maxRunning, ++running);
      for (let turns = 50 - item; turns > 0; turns--) await turn();
      running--;
      return item * 2;
    });
    assert.deepEqual(
      results,
      Array.from({ length: 50 }, (_, item) => item * 2),
    );
    assert.equal(maxRunning, 4);
    assert.deepEqual(await mapConcurrently([], 4, async (item) => item), []);
  });

  it('rejects with the first failure and begins no further items', async () => {
    const begun: number[] = [];
    const work = async (item: number) => {
      begun.push(item);
      await turn();
      if (item === 1) throw new Error('no');
    };
    await assert.rejects(mapConcurrently([0, 1, 2, 3, 4, 5, 6, 7], 2, work), /no/);
    for (let turns = 0; turns < 20; turns++) await turn();
    assert.ok(begun.length <= 4, begun.join());
  });
});
