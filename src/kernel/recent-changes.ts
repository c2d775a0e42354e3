import { RecentlyUsed } from './caches/index.ts';

/**
 * The newest changes of a stream, in memory. It is bounded and knows how far back it reaches, so that a reader either
 * gets all changes of a range or learns that it has to ask the database.
 */
export class RecentChanges<T> {
  readonly #capacity: number;
  readonly #sizeOf: (change: T) => number;
  /** Ascending; `#changes` has the same indexes. */
  readonly #positions: number[] = [];
  readonly #changes: T[] = [];
  #size = 0;
  #floor: number;

  /**
   * @param floor position after which all changes are added
   * @param capacity size that is kept at least; up to twice as much is held
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

  /** @param position not below the position of the change that was added last */
  add(change: T, position: number): void {
    this.#positions.push(position);
    this.#changes.push(change);
    this.#size += this.#sizeOf(change);
    if (this.#size >= this.#capacity * 2) this.#dropOldest();
  }

  /** Whether it is certain that nothing has changed after a position. */
  isUnchangedSince(position: number): boolean {
    return position >= this.newest;
  }

  /** The changes in `(after, upTo]`, oldest first; `undefined` when some of them may have been dropped. */
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

/** `RecentChanges` of many keys, of which the most recently used are remembered. */
export class RecentChangesByKey<T> {
  readonly #keys: RecentlyUsed<string, RecentChanges<T>>;
  readonly #perKey: number;
  /** Changes up to here may be missing for keys that are not remembered. */
  #floor: number;

  /**
   * @param floor position after which all changes are added
   * @param bounds how many keys are remembered, and how many changes of each at least
   */
  constructor(floor: number, { maxKeys, perKey }: { maxKeys: number; perKey: number }) {
    this.#floor = floor;
    this.#perKey = perKey;
    this.#keys = new RecentlyUsed({
      max: maxKeys,
      dispose: (changes, _key, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, changes.newest);
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
  }

  /** The changes of a key in `(after, upTo]`, oldest first; `undefined` when some may have been dropped. */
  between(key: string, after: number, upTo: number): T[] | undefined {
    const changes = this.#keys.get(key);
    if (changes) return changes.between(after, upTo);
    return after < this.#floor ? undefined : [];
  }
}

/** Where each of many keys changed last. Of keys that are not remembered it is known when they had not changed yet. */
export class LastChanges {
  readonly #positions: RecentlyUsed<string, number>;
  /** Keys that are not remembered have not changed after this position. */
  #floor: number;

  /** @param floor position after which all changes are noted */
  constructor(floor: number, maxKeys: number) {
    this.#floor = floor;
    this.#positions = new RecentlyUsed({
      max: maxKeys,
      dispose: (position, _key, reason) => {
        if (reason === 'evict') this.#floor = Math.max(this.#floor, position);
      },
    });
  }

  set(key: string, position: number): void {
    this.#positions.set(key, position);
  }

  /** A position after which the key has not changed: that of its last change, if it is remembered. */
  of(key: string): number {
    return this.#positions.get(key) ?? this.#floor;
  }
}
