import { LRUCache } from 'lru-cache';

type Options<K extends NonNullable<unknown>, V extends NonNullable<unknown>> = Omit<
  LRUCache.OptionsMaxLimit<K, V, unknown>,
  'sizeCalculation' | 'maxSize' | 'maxEntrySize'
>;

/**
 * The most recently used entries, `max` at most. It takes memory as it fills: the library reserves room for `max`
 * entries at once, which for all caches of a server were 50 MB and a tenth of a second before the first request. It
 * does not where it counts sizes, so every entry has the size 1.
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
