import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { LRUCache } from 'lru-cache';
import { RecentlyUsed } from './recently-used.ts';

it('RecentlyUsed keeps and evicts the same entries as LRUCache, in the same order', () => {
  const step = fc.record({
    what: fc.constantFrom('get', 'set', 'delete', 'peek', 'has'),
    key: fc.integer({ min: 0, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 1, max: 8 }), (steps, max) => {
      const evicted: [string, number][] = [];
      const dispose = (name: string) => (_value: number, key: number, reason: string) => {
        if (reason === 'evict') evicted.push([name, key]);
      };
      const own = new RecentlyUsed<number, number>({ max, dispose: dispose('own') });
      const library = new LRUCache<number, number>({ max, dispose: dispose('library') });
      for (const [index, { what, key }] of steps.entries()) {
        for (const cache of [own, library]) if (what === 'set') cache.set(key, index);
        if (what !== 'set') assert.equal(own[what](key), library[what](key));
      }
      assert.deepEqual([...own.entries()], [...library.entries()]);
      const keysOf = (name: string) => evicted.filter(([of]) => of === name).map(([, key]) => key);
      assert.deepEqual(keysOf('own'), keysOf('library'));
    }),
  );
});
