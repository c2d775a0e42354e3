import type { Cache, CacheRegistry } from './caches/index.ts';

/**
 * Caches the newest changes of a stream. It is bounded and knows how far back it reaches, so that a reader either
 * receives all changes of a range or learns that it must query the database.
 */
export class RecentChanges<T> {
  readonly #capacity: number;
  readonly #sizeOf: (change: T) => number;
  /** Ascending; `#changes` has the same indexes. */
  readonly #positions: number[] = [];
  readonly #changes: T[] = [];
  #size = 0;
  /** All changes after this position are in memory. */
  #floor: number;

  /**
   * @param floor the caller adds every change after this position
   * @param capacity total size to which the changes are reduced when they reach twice as much
   * @param sizeOf size of one change, by default 1
   */
  constructor(floor: number, capacity: number, sizeOf: (change: T) => number = one) {
    this.#floor = floor;
    this.#capacity = capacity;
    this.#sizeOf = sizeOf;
  }

  /** Position of the newest change; the floor when there is none. */
  get newest(): number {
    return this.#positions.at(-1) ?? this.#floor;
  }

  /** Number of changes in memory. */
  get count(): number {
    return this.#changes.length;
  }

  /** @param position not below the position of the change that was added last */
  add(change: T, position: number): void {
    this.#positions.push(position);
    this.#changes.push(change);
    this.#size += this.#sizeOf(change);
    if (this.#size >= this.#capacity * 2) this.#dropOldest();
  }

  /** Whether certainly nothing has changed after a position. */
  isUnchangedSince(position: number): boolean {
    return position >= this.newest;
  }

  /** Returns the changes in `(after, upTo]`, oldest first; `undefined` when some of them may have been dropped. */
  between(after: number, upTo = Number.POSITIVE_INFINITY): T[] | undefined {
    if (after < this.#floor) return undefined;
    let end = this.#positions.length;
    while (end > 0 && this.#positions[end - 1]! > upTo) end--;
    let start = end;
    while (start > 0 && this.#positions[start - 1]! > after) start--;
    return this.#changes.slice(start, end);
  }

  #dropOldest(): void {
    let count = 0;
    while (count < this.#changes.length && this.#size > this.#capacity) {
      this.#size -= this.#sizeOf(this.#changes[count++]!);
    }
    this.#floor = this.#positions[count - 1] ?? this.#floor;
    this.#positions.splice(0, count);
    this.#changes.splice(0, count);
  }
}

const one = () => 1;

/** Estimated bytes of a key without changes. */
const keyBytes = 200;

/** The cache of `RecentChangesByKey`, and its bounds. */
export interface RecentChangesCache {
  /** Name of the cache. */
  readonly name: string;
  /** Maximum number of keys. */
  readonly maxKeys: number;
  /** Minimum number of kept changes of each key; up to twice as many are in memory. */
  readonly perKey: number;
  /** Maximum estimated bytes of all changes. */
  readonly maxBytes: number;
  /** Estimated bytes of one change. */
  readonly changeBytes: number;
}

/** `RecentChanges` for each of the most recently used keys. */
export class RecentChangesByKey<T> {
  readonly #keys: Cache<string, RecentChanges<T>>;
  readonly #perKey: number;
  /** Changes up to this position may be missing for keys that are not in memory. */
  #floor: number;

  /** @param floor the caller adds every change after this position */
  constructor(floor: number, caches: CacheRegistry, cache: RecentChangesCache) {
    const { name, maxKeys, perKey, maxBytes, changeBytes } = cache;
    this.#floor = floor;
    this.#perKey = perKey;
    this.#keys = caches.create(name, {
      size: maxKeys,
      maxBytes,
      sizeOf: ({ count }) => keyBytes + changeBytes * count,
      onRemove: (changes) => {
        this.#floor = Math.max(this.#floor, changes.newest);
      },
    });
  }

  /** @param position not below the position of the change that was added last */
  add(key: string, change: T, position: number): void {
    let changes = this.#keys.get(key);
    if (!changes) {
      changes = new RecentChanges(this.#floor, this.#perKey);
      this.#keys.set(key, changes);
    }
    changes.add(change, position);
    this.#keys.remeasure(key);
  }

  /** Returns the changes of a key in `(after, upTo]`, oldest first; `undefined` when some may have been dropped. */
  between(key: string, after: number, upTo: number): T[] | undefined {
    const changes = this.#keys.get(key);
    if (changes) return changes.between(after, upTo);
    return after < this.#floor ? undefined : [];
  }
}

/**
 * Holds the position of the last change of each key. For a key that is not in memory, it returns the same position or a
 * later one.
 */
export class LastChanges {
  readonly #positions: Cache<string, number>;
  /** Keys that are not in memory have not changed after this position. */
  #floor: number;

  /**
   * @param floor the caller records every change after this position
   * @param cache name of the cache, and maximum number of keys
   */
  constructor(floor: number, caches: CacheRegistry, { name, maxKeys }: { name: string; maxKeys: number }) {
    this.#floor = floor;
    this.#positions = caches.create(name, {
      size: maxKeys,
      onRemove: (position) => {
        this.#floor = Math.max(this.#floor, position);
      },
    });
  }

  /** Records a change of a key. */
  set(key: string, position: number): void {
    this.#positions.set(key, position);
  }

  /** Returns a position after which the key has not changed: the position of its last change if the key is in memory. */
  of(key: string): number {
    return this.#positions.get(key) ?? this.#floor;
  }
}
