import { LoadOnce } from '../load-once.ts';
import { RecentlyUsed } from './recently-used.ts';

export interface CacheSettings {
  /** Multiplies the size that the owner of the cache asked for. */
  readonly factor: number;
  /** Milliseconds without use after which an entry goes; `undefined`: never. */
  readonly ttl: number | undefined;
  /** Remember when each entry was used last, for `dropOldest`. */
  readonly tracksUse?: boolean;
}

interface Entry<V> {
  readonly value: V;
  usedAt: number;
}

// `lru-cache` takes no `undefined`; values are never that, so that "absent" is told from "known to be absent" (null).
type Value = NonNullable<unknown> | null;

/**
 * The most recently used entries, up to a bound. Values are anything but `undefined`.
 * Made by `CacheRegistry.create`.
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
   * @param size entries at factor 1
   * @param now milliseconds that only ever grow
   */
  constructor(name: string, size: number, settings: CacheSettings, now: () => number) {
    this.name = name;
    this.#size = size;
    this.#now = now;
    this.#tracksUse = settings.tracksUse === true;
    this.#entries = this.#build(settings);
  }

  /** Number of entries now. */
  get size(): number {
    return this.#entries.size;
  }

  /** Most entries that are kept. */
  get capacity(): number {
    return this.#entries.maxSize;
  }

  /** The entry, which counts as a hit or a miss. */
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

  /** Stores an entry; the result of a load of it that is running is not stored. */
  set(key: K, value: V): void {
    this.#loading.forget(key);
    this.#entries.set(key, { value, usedAt: this.#tracksUse ? this.#now() : 0 });
  }

  /** Removes an entry; the result of a load of it that is running is not stored. */
  delete(key: K): void {
    this.#loading.forget(key);
    this.#entries.delete(key);
  }

  /** Forgets everything, what is being loaded included. */
  clear(): void {
    this.#loading.forgetAll();
    this.#entries.clear();
  }

  /**
   * The entry, or what `load` finds, which is remembered. Callers that ask at the same time share one load. When it
   * fails, all of them are told and nothing is remembered.
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

  /** Changes size and lifetime, keeping the entries that still fit. */
  configure(settings: CacheSettings): void {
    const entries = this.#entries.dump();
    this.#tracksUse = settings.tracksUse === true;
    this.#entries = this.#build(settings);
    // The most recently used come last.
    this.#entries.load(entries.slice(-this.capacity));
  }

  /** Drops entries whose time is over; they would otherwise stay until somebody asks for them. */
  dropStale(): void {
    this.#entries.purgeStale();
  }

  /**
   * Drops entries that were used longest ago.
   * @param share how much of all entries at most, from 0 to 1
   * @param usedBefore entries that were used since then stay; on the clock of the cache
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
    // To the library an entry made at time 0 has no age, hence the 1.
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
