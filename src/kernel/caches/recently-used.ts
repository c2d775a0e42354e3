import { LRUCache } from 'lru-cache';

type Options<K extends NonNullable<unknown>, V extends NonNullable<unknown>> = Omit<
  LRUCache.OptionsMaxLimit<K, V, unknown>,
  'sizeCalculation' | 'maxSize' | 'maxEntrySize'
>;

/**
 * Caches the `max` most recently used entries. Memory grows with the entries: `LRUCache` with `max` allocates
 * space for all entries at once, which for all caches of a server took 50 MB and 100 ms before the first
 * request. With `maxSize` it does not, so every entry has size 1.
 */
export class RecentlyUsed<K extends NonNullable<unknown>, V extends NonNullable<unknown>> extends LRUCache<
  K,
  V
> {
  constructor({ max, ...options }: Options<K, V>) {
    super({ ...options, maxSize: max, sizeCalculation: one });
  }
}

const one = () => 1;
