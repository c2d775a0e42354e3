import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { createMetrics } from '../observability/index.ts';
import { CacheRegistry, cachesSection, maxCacheBytes } from './index.ts';

const configWith = (global_factor: number, per_cache_factors: Record<string, number> = {}, ttl?: number) =>
  sectionDefaults(cachesSection, {
    caches: {
      global_factor,
      per_cache_factors,
      expire_caches: ttl !== undefined,
      ...(ttl !== undefined && { cache_entry_ttl: ttl }),
    },
  });

describe('Cache', () => {
  it('keeps the most recently used entries [option: caches.global_factor]', () => {
    const cache = new CacheRegistry(manualClock(), configWith(0.5)).create<string, number>('users', {
      size: 4,
    });
    cache.set('a', 1);
    cache.set('b', 2);
    assert.equal(cache.get('a'), 1);
    cache.set('c', 3);
    assert.equal(cache.get('b'), undefined);
    assert.deepEqual([cache.hits, cache.misses, cache.evictions, cache.size], [1, 1, 1, 2]);
  });

  it('stores null for a value that is known to be absent', async () => {
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, string | null>('a', {
      size: 9,
    });
    assert.equal(await cache.getOrLoad('x', async () => null), null);
    assert.equal(cache.get('x'), null);
  });

  it('shares one load among concurrent callers', async () => {
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, number>('a', { size: 9 });
    let loads = 0;
    const load = async () => ++loads;
    assert.deepEqual(await Promise.all([cache.getOrLoad('x', load), cache.getOrLoad('x', load)]), [1, 1]);
    assert.equal(await cache.getOrLoad('x', load), 1);
    assert.equal(loads, 1);
  });

  it('rejects all callers of a failed load and loads again for the next caller', async () => {
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, number>('a', { size: 9 });
    const fail = () => Promise.reject(new Error('the load failed'));
    const both = await Promise.allSettled([cache.getOrLoad('x', fail), cache.getOrLoad('x', fail)]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(await cache.getOrLoad('x', async () => 7), 7);
  });

  it('does not store the result of a load that began before the key was deleted', async () => {
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, string>('a', { size: 9 });
    const { promise, resolve } = Promise.withResolvers<string>();
    const old = cache.getOrLoad('x', () => promise);
    cache.delete('x');
    const fresh = cache.getOrLoad('x', async () => 'new');
    assert.equal(await fresh, 'new');
    resolve('old');
    assert.equal(await old, 'old');
    assert.equal(cache.get('x'), 'new');
  });

  it('evicts entries unused for cache_entry_ttl [option: caches.expire_caches, caches.cache_entry_ttl]', () => {
    const clock = manualClock();
    const cache = new CacheRegistry(clock, configWith(1, {}, 90_000)).create<string, number>('a', {
      size: 9,
    });
    cache.set('used', 1);
    cache.set('unused', 2);
    clock.advance(60_000);
    assert.equal(cache.get('used'), 1);
    clock.advance(60_001);
    assert.equal(cache.size, 1);
    assert.equal(cache.get('used'), 1);
    assert.equal(cache.get('unused'), undefined);
    const lasting = new CacheRegistry(clock, configWith(1)).create<string, number>('a', { size: 9 });
    lasting.set('unused', 2);
    clock.advance(86_400_000);
    assert.equal(lasting.get('unused'), 2);
  });

  it('calls onRemove for evicted and deleted entries, but not for replaced entries', () => {
    const removed: unknown[] = [];
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, number>('a', {
      size: 2,
      onRemove: (value, key, isEvicted) => removed.push([key, value, isEvicted]),
    });
    cache.set('a', 1);
    cache.set('a', 2);
    cache.set('b', 3);
    cache.set('c', 4);
    cache.delete('c');
    cache.clear();
    assert.deepEqual(removed, [
      ['a', 2, true],
      ['c', 4, false],
      ['b', 3, false],
    ]);
  });

  it('does not return expired values, and removes them by a timer', () => {
    const clock = manualClock();
    const cache = new CacheRegistry(clock, configWith(1)).create<string, number>('until', {
      size: 9,
      isExpired: (until) => until <= clock.monotonic(),
    });
    cache.set('a', 30_000);
    cache.set('b', 90_000);
    clock.advance(30_000);
    assert.deepEqual(
      [cache.get('a'), cache.peek('a'), cache.has('b'), cache.size],
      [undefined, undefined, true, 2],
    );
    clock.advance(30_000);
    assert.equal(cache.size, 1);
  });
});

describe('Cache bounded by bytes', () => {
  const cacheOf = (maxBytes: number, factor = 1) =>
    new CacheRegistry(manualClock(), configWith(factor)).create<number, string>('texts', {
      maxBytes,
      sizeOf: (text) => text.length,
    });

  it('evicts the least recently used entries when the estimated bytes exceed the maximum', () => {
    const cache = cacheOf(10_000);
    for (let i = 0; i < 9; i++) cache.set(i, 'x'.repeat(1_000));
    assert.deepEqual([cache.size, cache.evictions], [8, 1]);
    assert.equal(cache.bytes, 8 * 1_120);
    cache.set(9, 'x'.repeat(5_000));
    assert.deepEqual(
      [...cache.values()].map((text) => text.length),
      [5_000, 1_000, 1_000, 1_000, 1_000],
    );
    assert.ok(cache.bytes <= 10_000);
  });

  it('does not store a value that is larger than the whole cache may be, and drops the value that it replaces', () => {
    const cache = cacheOf(10_000);
    cache.set(1, 'small');
    cache.set(2, 'small');
    cache.set(1, 'x'.repeat(10_000));
    assert.deepEqual([cache.get(1), cache.get(2), cache.bytes], [undefined, 'small', 125]);
  });

  it('measures an entry again after its value has grown', () => {
    const cache = new CacheRegistry(manualClock(), configWith(1)).create<string, number[]>('lists', {
      maxBytes: 1_000,
      sizeOf: (list) => 8 * list.length,
    });
    const list = [1];
    cache.set('a', []);
    cache.set('b', list);
    for (let i = 0; i < 99; i++) list.push(i);
    cache.remeasure('b');
    assert.deepEqual([cache.has('a'), cache.has('b')], [false, true]);
    assert.equal(cache.bytes, 120 + 24 + 1 + 8 * 100);
  });

  it('multiplies the maximum bytes by the factor [option: caches.global_factor]', () => {
    assert.deepEqual(
      [cacheOf(1_000_000, 0.5).maxBytes, cacheOf(1_000_000, 2).maxBytes],
      [500_000, 2_000_000],
    );
  });
});

describe('CacheRegistry', () => {
  it('rejects a cache that does not fit into the budget of all caches', () => {
    const registry = new CacheRegistry(manualClock(), configWith(1));
    registry.create('a', { maxBytes: maxCacheBytes - 1_000 });
    assert.throws(() => registry.create('b', { maxBytes: 1_001 }), /budget/);
  });

  it('changes cache sizes at run time and keeps the entries that fit [option: caches.global_factor, caches.per_cache_factors]', () => {
    const registry = new CacheRegistry(manualClock(), configWith(1, { getUsersInRoom: 2 }));
    const cache = registry.create<number, number>('get_users_in_room', { size: 10 });
    const fixed = registry.create<number, number>('fixed', { size: 10, fixed: true });
    assert.deepEqual([cache.capacity, fixed.capacity], [20, 10]);
    for (let i = 0; i < 20; i++) cache.set(i, i);
    registry.configure(configWith(0.5));
    assert.deepEqual([cache.capacity, cache.size, fixed.capacity], [5, 5, 10]);
    for (let i = 15; i < 20; i++) assert.equal(cache.get(i), i);
  });

  it('drops the least recently used entries when the memory use exceeds the maximum, until the target is reached [option: caches.cache_autotuning.max_cache_memory_usage, caches.cache_autotuning.target_cache_memory_usage, caches.cache_autotuning.min_cache_ttl]', () => {
    const clock = manualClock();
    let inUse = 900;
    const tuning = {
      max_cache_memory_usage: 1_000,
      target_cache_memory_usage: 500,
      min_cache_ttl: 60_000,
    };
    const config = sectionDefaults(cachesSection, { caches: { global_factor: 1, cache_autotuning: tuning } });
    const registry = new CacheRegistry(clock, config, undefined, () => inUse);
    const cache = registry.create<number, number>('a', { size: 100 });
    const fixed = registry.create<number, number>('fixed', { size: 1, fixed: true });
    fixed.set(1, 1);
    for (let i = 0; i < 100; i++) cache.set(i, i);
    const sizes = (use: number, checks: number) => {
      inUse = use;
      return Array.from({ length: checks }, () => {
        clock.advance(5_000);
        return cache.size;
      });
    };
    assert.deepEqual(sizes(1_001, 11), Array(11).fill(100), 'all entries were used within min_cache_ttl');
    for (let i = 0; i < 30; i++) cache.get(i);
    assert.deepEqual(sizes(900, 2), [90, 81], 'drops entries until the target is reached');
    assert.deepEqual(sizes(500, 2), [81, 81]);
    assert.deepEqual(sizes(900, 2), [81, 81], 'drops nothing below the maximum');
    assert.deepEqual(sizes(2_000, 4), [72, 64, 57, 51]);
    assert.equal(cache.get(0), 0, 'the most recently used entries stay');
    assert.equal(cache.get(30), undefined);
    assert.deepEqual([fixed.size, cache.evictions], [1, 49]);
  });

  it('rejects a second cache of the same name', () => {
    const registry = new CacheRegistry(manualClock(), configWith(1));
    registry.create('a', { size: 1 });
    assert.throws(() => registry.create('a', { size: 1 }), /already/);
  });

  it('exposes the hits and sizes of caches as metrics', async () => {
    const metrics = await createMetrics();
    const cache = new CacheRegistry(manualClock(), configWith(1), metrics).create<string, number>('users', {
      size: 3,
    });
    cache.set('a', 1);
    cache.get('a');
    const text = await metrics.render();
    assert.match(text, /server_cache_hits\{name="users"\} 1\n/);
    assert.match(text, /server_cache_max_size\{name="users"\} 3\n/);
    assert.match(text, /server_cache_bytes\{name="users"\} 145\n/);
    assert.match(text, /server_cache_max_bytes\{name="users"\} 600\n/);
  });
});
