import { LRUCache as Real } from 'lru-cache';

/** Maximal number of entries of a cache of a simulated server. */
const maxEntries = 500;

/**
 * Stands for `lru-cache` in simulations. Caches that reserve memory for all their entries would take most of
 * the time of a server's start; and small caches evict entries, so that reading them again is tested too.
 */
export class LRUCache<K extends object | string | number, V extends object, C = unknown> extends Real<
  K,
  V,
  C
> {
  constructor(options: LRUCache.Options<K, V, C>) {
    super(options.max !== undefined && options.max > maxEntries ? { ...options, max: maxEntries } : options);
  }
}

export declare namespace LRUCache {
  type Options<K extends object | string | number, V extends object, C> = Real.Options<K, V, C>;
}
