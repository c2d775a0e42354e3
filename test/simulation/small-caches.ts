import { LRUCache as Real } from 'lru-cache';

/** Entries that a cache of a simulated server holds at most. */
const most = 500;

/**
 * Stands for `lru-cache` in simulations. Caches that take room for all their entries beforehand would cost most of the
 * time of a server's start; and small ones forget, so that what was forgotten has to be found again.
 */
export class LRUCache<K extends object | string | number, V extends object, C = unknown> extends Real<
  K,
  V,
  C
> {
  constructor(options: LRUCache.Options<K, V, C>) {
    super(options.max !== undefined && options.max > most ? { ...options, max: most } : options);
  }
}

export declare namespace LRUCache {
  type Options<K extends object | string | number, V extends object, C> = Real.Options<K, V, C>;
}
