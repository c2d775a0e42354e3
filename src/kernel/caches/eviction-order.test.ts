import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { Cache } from './cache.ts';

it('Cache keeps and evicts the same entries as LRUCache, in the same order', () => {
  const step = fc.record({
    what: fc.constantFrom('get', 'set', 'delete', 'peek', 'has'),
    key: fc.integer({ min: 0, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 8 }), (steps, max) => {
      const evicted: [string, number][] = [];
      const dispose = (_value: number, key: number, reason: string) => {
        if (reason === 'evict') evicted.push(['library', key]);
      };
      const onRemove = (_value: number, key: number, isEvicted: boolean) => {
        if (isEvicted) evicted.push(['tested', key]);
      };
      const tested = new Cache<number, number>(
        'tested',
        { size: max, onRemove },
        { factor: 1, ttl: undefined },
        { now: 0 },
      );
      const library = new LRUCache<number, number>({ max, dispose });
      for (const [index, { what, key }] of steps.entries()) {
        for (const cache of [tested, library]) if (what === 'set') cache.set(key, index);
        if (what === 'delete') for (const cache of [tested, library]) cache.delete(key);
        if (what !== 'set' && what !== 'delete') assert.equal(tested[what](key), library[what](key));
      }
      assert.deepEqual(tested.values(), [...library.values()]);
      const keysOf = (name: string) => evicted.filter(([of]) => of === name).map(([, key]) => key);
      assert.deepEqual(keysOf('tested'), keysOf('library'));
    }),
  );
});
