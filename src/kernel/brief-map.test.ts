import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BriefMap } from './brief-map.ts';

describe('BriefMap', () => {
  it('returns the value that was set last for a key, until the key is deleted', () => {
    const map = new BriefMap<string, number>();
    map.set('one', 1);
    map.set('two', 2);
    map.set('one', 3);
    assert.equal(map.get('one'), 3);
    assert.equal(map.size, 2);
    map.delete('one');
    map.delete('one');
    map.delete('unknown');
    assert.equal(map.get('one'), undefined);
    assert.equal(map.size, 1);
    assert.deepEqual(map.values(), [2]);
    map.set('one', 4);
    assert.deepEqual(map.values().sort(), [2, 4]);
    map.clear();
    assert.equal(map.size, 0);
    assert.deepEqual(map.values(), []);
  });

  it('has the same entries as a Map after many changes', () => {
    const map = new BriefMap<number, number>();
    const expected = new Map<number, number>();
    for (let step = 0; step < 5_000; step++) {
      const key = (step * 7_919) % 211;
      if (step % 3 === 0) {
        map.delete(key);
        expected.delete(key);
      } else {
        map.set(key, step);
        expected.set(key, step);
      }
      assert.equal(map.size, expected.size);
    }
    for (let key = 0; key < 211; key++) assert.equal(map.get(key), expected.get(key));
  });

  it('lets a garbage collection of the young generation free deleted entries', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
    /** Returns the bytes that stay after 20,000 short-lived entries of about 1 kB, without a collection of the old generation. */
    const remaining = (map: Pick<BriefMap<number, object>, 'set' | 'delete'>) => {
      for (let key = 0; key < 100; key++) map.set(key, new Array(128).fill(key));
      gc();
      const before = process.memoryUsage().heapUsed;
      for (let key = 100; key < 20_000; key++) {
        map.set(key, new Array(128).fill(key));
        map.delete(key - 100);
        if (key % 1_000 === 0) gc({ type: 'minor' });
      }
      gc({ type: 'minor' });
      gc({ type: 'minor' });
      return process.memoryUsage().heapUsed - before;
    };
    const inBriefMap = remaining(new BriefMap());
    const inMap = remaining(new Map());
    assert.ok(inMap > 10_000_000, `${inMap} bytes remain in a Map, which BriefMap avoids`);
    assert.ok(inBriefMap < 3_000_000, `${inBriefMap} bytes remain`);
  });
});
