import { LoadOnce } from '../load-once.ts';

export interface CacheSettings {
  /** Multiplies the bounds that the owner of the cache requested. */
  readonly factor: number;
  /** Milliseconds without use after which an entry expires; `undefined`: never. */
  readonly ttl: number | undefined;
}

/** Bounds of a cache at factor 1, and how it measures and removes entries. */
export interface CacheBounds<K, V> {
  /** Maximum number of entries; by default only bytes bound the cache. */
  readonly size?: number;
  /** Maximum estimated bytes of all entries; by default `smallEntryBytes` for each of `size` entries. */
  readonly maxBytes?: number;
  /**
   * Estimates the bytes of a value, called when it is stored. Leave it out where values take no memory of their own: for
   * numbers, booleans, and objects that are in memory for another reason.
   */
  readonly sizeOf?: (value: V, key: K) => number;
  /** Whether a value has expired. `get` does not return an expired value, and a timer removes it. */
  readonly isExpired?: (value: V) => boolean;
  /** Called for each removed entry, but not when a value is replaced. `isEvicted`: removed by the cache itself. */
  readonly onRemove?: (value: V, key: K, isEvicted: boolean) => void;
}

/** The current time of the registry, in monotonic milliseconds; read instead of the clock, which is slower. */
export interface CacheTime {
  now: number;
}

/** Estimated bytes of an entry besides its key and its value. */
const entryBytes = 120;

/** Estimated bytes of a key besides its characters. */
const keyBytes = 24;

/** Estimated bytes of an entry with a key of about 50 characters, for caches that bound only the number of entries. */
const smallEntryBytes = 200;

/** No factor reduces the maximum of a cache below this number of bytes. Smaller caches are not reduced at all. */
const minBytes = 65_536;

/** Returns the maximum bytes of a cache at factor 1. */
export function maxBytesOf({ size, maxBytes }: Pick<CacheBounds<never, never>, 'size' | 'maxBytes'>): number {
  if (maxBytes !== undefined) return maxBytes;
  if (size === undefined) throw new TypeError('A cache needs a maximum number of bytes or entries');
  return size * smallEntryBytes;
}

interface Entry<K, V> {
  readonly key: K;
  value: V;
  bytes: number;
  usedAt: number;
  newer: Entry<K, V> | undefined;
  older: Entry<K, V> | undefined;
}

// Values are never `undefined`, so that a missing entry differs from null (known to be absent).
type Value = NonNullable<unknown> | null;

/**
 * Caches the most recently used entries, up to a maximum number and a maximum of estimated bytes. Values are
 * anything but `undefined`. Memory grows with the entries. Created by `CacheRegistry.create`.
 */
export class Cache<K extends NonNullable<unknown>, V extends Value> {
  readonly name: string;
  hits = 0;
  misses = 0;
  evictions = 0;
  readonly #bounds: CacheBounds<K, V>;
  readonly #isExpired: ((value: V) => boolean) | undefined;
  readonly #time: CacheTime;
  readonly #loading = new LoadOnce<K, V>();
  readonly #entries = new Map<K, Entry<K, V>>();
  #newest: Entry<K, V> | undefined;
  #oldest: Entry<K, V> | undefined;
  #bytes = 0;
  #maxEntries = 0;
  #maxBytes = 0;
  #ttl: number | undefined;

  constructor(name: string, bounds: CacheBounds<K, V>, settings: CacheSettings, time: CacheTime) {
    this.name = name;
    this.#bounds = bounds;
    this.#isExpired = bounds.isExpired;
    this.#time = time;
    this.configure(settings);
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size;
  }

  /** Maximum number of entries. */
  get capacity(): number {
    return this.#maxEntries;
  }

  /** Estimated bytes of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Maximum estimated bytes of all entries. */
  get maxBytes(): number {
    return this.#maxBytes;
  }

  /** Returns the value of a key, counts a hit or a miss, and makes the entry the most recently used one. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#isExpired?.(entry.value)) {
      this.misses++;
      return undefined;
    }
    this.hits++;
    entry.usedAt = this.#time.now;
    if (entry !== this.#newest) this.#moveToNewest(entry);
    return entry.value;
  }

  /** Returns the value of a key, without counting the entry as used. */
  peek(key: K): V | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || this.#isExpired?.(entry.value) ? undefined : entry.value;
  }

  has(key: K): boolean {
    return this.peek(key) !== undefined;
  }

  /**
   * Stores an entry. When it is larger than the whole cache may be, only removes the old entry of its key. The result of
   * a running load of the same key is discarded.
   */
  set(key: K, value: V): void {
    this.#loading.forget(key);
    const bytes = this.#measure(value, key);
    let entry = this.#entries.get(key);
    if (bytes > this.#maxBytes) {
      if (entry) this.#remove(entry, true);
      return;
    }
    if (entry) {
      entry.value = value;
      this.#bytes += bytes - entry.bytes;
      entry.bytes = bytes;
      entry.usedAt = this.#time.now;
      if (entry !== this.#newest) this.#moveToNewest(entry);
    } else {
      entry = { key, value, bytes, usedAt: this.#time.now, newer: undefined, older: this.#newest };
      if (this.#newest) this.#newest.newer = entry;
      else this.#oldest = entry;
      this.#newest = entry;
      this.#entries.set(key, entry);
      this.#bytes += bytes;
    }
    this.#evictAboveBounds();
  }

  /** Measures an entry again after its value has grown or shrunk. */
  remeasure(key: K): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    const bytes = this.#measure(entry.value, key);
    this.#bytes += bytes - entry.bytes;
    entry.bytes = bytes;
    this.#evictAboveBounds();
  }

  /** Removes an entry. The result of a running load of the same key is discarded. */
  delete(key: K): void {
    this.#loading.forget(key);
    const entry = this.#entries.get(key);
    if (entry) this.#remove(entry, false);
  }

  /**
   * Calls `isStale` for each entry, and removes the entries for which it is true. Discards the results of running
   * loads.
   */
  deleteWhere(isStale: (value: V, key: K) => boolean): void {
    this.#loading.forgetAll();
    this.#removeWhere(isStale, false);
  }

  /** Removes all entries. The results of running loads are discarded. */
  clear(): void {
    this.deleteWhere(() => true);
  }

  /** Returns all values, the most recently used first, without counting them as used. */
  values(): V[] {
    const values: V[] = [];
    for (let entry = this.#newest; entry; entry = entry.older) values.push(entry.value);
    return values;
  }

  /**
   * Returns the value of a key, or loads and stores it. Concurrent callers share one load. When the load fails, all of them
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

  /** Changes bounds and lifetime; keeps the entries that still fit. */
  configure({ factor, ttl }: CacheSettings): void {
    const { size = Number.POSITIVE_INFINITY } = this.#bounds;
    const maxBytes = maxBytesOf(this.#bounds);
    this.#maxEntries = factor > 0 ? Math.max(1, Math.floor(size * factor)) : 1;
    this.#maxBytes = Math.max(Math.min(minBytes, maxBytes), Math.floor(maxBytes * factor));
    this.#ttl = ttl;
    this.#evictAboveBounds();
  }

  /** Removes expired entries, which otherwise stay in memory until they are evicted. */
  dropExpired(): void {
    if (this.#isExpired) this.#removeWhere(this.#isExpired, true);
    if (this.#ttl === undefined) return;
    const usedBefore = this.#time.now - this.#ttl;
    while (this.#oldest && this.#oldest.usedAt < usedBefore) this.#remove(this.#oldest, true);
  }

  /**
   * Drops the least recently used entries.
   * @param share maximum share of all entries to drop, from 0 to 1
   * @param usedBefore keeps entries used after this time, in milliseconds of `CacheTime`
   */
  dropOldest(share: number, usedBefore: number): void {
    for (let left = Math.ceil(this.size * share); left > 0; left--) {
      if (!this.#oldest || this.#oldest.usedAt > usedBefore) return;
      this.#remove(this.#oldest, true);
    }
  }

  #measure(value: V, key: K): number {
    const { sizeOf } = this.#bounds;
    return (
      entryBytes + (typeof key === 'string' ? keyBytes + key.length : 0) + (sizeOf ? sizeOf(value, key) : 0)
    );
  }

  #evictAboveBounds(): void {
    while (this.#bytes > this.#maxBytes || this.#entries.size > this.#maxEntries)
      this.#remove(this.#oldest!, true);
  }

  #moveToNewest(entry: Entry<K, V>): void {
    this.#unlink(entry);
    entry.newer = undefined;
    entry.older = this.#newest;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  #unlink({ newer, older }: Entry<K, V>): void {
    if (newer) newer.older = older;
    else this.#newest = older;
    if (older) older.newer = newer;
    else this.#oldest = newer;
  }

  #removeWhere(isSelected: (value: V, key: K) => boolean, isEvicted: boolean): void {
    for (const entry of this.#entries.values())
      if (isSelected(entry.value, entry.key)) this.#remove(entry, isEvicted);
  }

  #remove(entry: Entry<K, V>, isEvicted: boolean): void {
    this.#entries.delete(entry.key);
    this.#unlink(entry);
    this.#bytes -= entry.bytes;
    if (isEvicted) this.evictions++;
    this.#bounds.onRemove?.(entry.value, entry.key, isEvicted);
  }
}
