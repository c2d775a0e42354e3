import { LoadOnce } from '../load-once.ts';
import { RecentlyUsed } from './recently-used.ts';

export interface CacheSettings {
  /** Multiplies the size that the owner of the cache requested. */
  readonly factor: number;
  /** Milliseconds without use after which an entry expires; `undefined`: never. */
  readonly ttl: number | undefined;
  /** Records when each entry was last used, for `dropOldest`. */
  readonly tracksUse?: boolean;
}

interface Entry<V> {
  readonly value: V;
  usedAt: number;
}

// `lru-cache` does not store `undefined`. Values are never `undefined`, so that a missing entry differs from
// null (known to be absent).
type Value = NonNullable<unknown> | null;

/**
 * Caches the most recently used entries, up to a maximum. Values are anything but `undefined`.
 * Created by `CacheRegistry.create`.
 */
export class Cache<K extends NonNullable<unknown>, V extends Value> {
  readonly name: string;
  hits = 0;
  misses = 0;
  evictions = 0;
  readonly #size: number;
  readonly #now: () => number;
  readonly #loading = new LoadOnce<K, V>();
  #entries: RecentlyUsed<K, Entry<V>>;
  #tracksUse: boolean;

  /**
   * @param size maximum number of entries at factor 1
   * @param now monotonic milliseconds
   */
  constructor(name: string, size: number, settings: CacheSettings, now: () => number) {
    this.name = name;
    this.#size = size;
    this.#now = now;
    this.#tracksUse = settings.tracksUse === true;
    this.#entries = this.#build(settings);
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Maximum number of entries. */
  get capacity(): number {
    return this.#entries.maxSize;
  }

  /** Returns the entry and counts a hit or a miss. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.misses++;
      return undefined;
    }
    this.hits++;
    if (this.#tracksUse) entry.usedAt = this.#now();
    return entry.value;
  }

  /** Stores an entry. The result of a running load of the same key is discarded. */
  set(key: K, value: V): void {
    this.#loading.forget(key);
    this.#entries.set(key, { value, usedAt: this.#tracksUse ? this.#now() : 0 });
  }

  /** Removes an entry. The result of a running load of the same key is discarded. */
  delete(key: K): void {
    this.#loading.forget(key);
    this.#entries.delete(key);
  }

  /** Removes the entries that `isStale` selects; looks at all of them. The results of running loads are discarded. */
  deleteWhere(isStale: (value: V) => boolean): void {
    this.#loading.forgetAll();
    for (const [key, { value }] of [...this.#entries.entries()])
      if (isStale(value)) this.#entries.delete(key);
  }

  /** Removes all entries. The results of running loads are discarded. */
  clear(): void {
    this.#loading.forgetAll();
    this.#entries.clear();
  }

  /**
   * Returns the entry, or loads and stores it. Concurrent callers share one load. When it fails, all of them
   * are rejected and nothing is stored.
   */
  getOrLoad(key: K, load: (key: K) => Promise<V>): V | Promise<V> {
    const known = this.get(key);
    if (known !== undefined) return known;
    return this.#loading.run(
      key,
      async () => load(key),
      (value) => this.set(key, value),
    );
  }

  /** Changes maximum size and lifetime; keeps the entries that still fit. */
  configure(settings: CacheSettings): void {
    const entries = this.#entries.dump();
    this.#tracksUse = settings.tracksUse === true;
    this.#entries = this.#build(settings);
    // `dump` lists the most recently used entries last.
    this.#entries.load(entries.slice(-this.capacity));
  }

  /** Removes expired entries, which otherwise stay in memory until they are read. */
  dropStale(): void {
    this.#entries.purgeStale();
  }

  /**
   * Drops the least recently used entries.
   * @param share maximum share of all entries to drop, from 0 to 1
   * @param usedBefore keeps entries used after this time, on the clock of the cache
   */
  dropOldest(share: number, usedBefore: number): void {
    let left = Math.ceil(this.size * share);
    for (const key of this.#entries.rkeys()) {
      const entry = this.#entries.peek(key);
      if (left-- <= 0 || (entry && entry.usedAt > usedBefore)) return;
      this.#entries.delete(key);
      this.evictions++;
    }
  }

  #build({ factor, ttl }: CacheSettings): RecentlyUsed<K, Entry<V>> {
    // `lru-cache` takes a start time of 0 as "no age", hence the 1.
    return new RecentlyUsed({
      max: Math.max(1, Math.floor(this.#size * factor)),
      ...(ttl === undefined
        ? {}
        : { ttl, updateAgeOnGet: true, ttlResolution: 0, perf: { now: () => this.#now() + 1 } }),
      dispose: (_value, _key, reason) => {
        if (reason === 'evict' || reason === 'expire') this.evictions++;
      },
    });
  }
}
