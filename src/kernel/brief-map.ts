/** Minimum number of deleted entries at which the map is copied. */
const minDeleted = 32;

/**
 * A map for entries that stay for a short time, for instance entries for requests that are being answered. A `Map` with
 * entries that change all the time replaces its table again and again, and the engine links each old table to the next
 * one. As soon as one of these tables is in the old generation of the heap, collections of the young generation cannot
 * free the entries of the later tables. This map copies itself into a new `Map` instead, so that deleted entries can be
 * collected while they are young.
 */
export class BriefMap<K, V extends NonNullable<unknown>> {
  /** Values by key; `undefined` stands for a deleted entry. The next copy leaves out deleted entries. */
  #entries = new Map<K, V | undefined>();
  #size = 0;

  /** Number of entries. */
  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    if (this.#entries.get(key) === undefined) this.#size++;
    this.#entries.set(key, value);
  }

  delete(key: K): void {
    if (this.#entries.get(key) === undefined) return;
    this.#entries.set(key, undefined);
    this.#size--;
    const deleted = this.#entries.size - this.#size;
    if (deleted >= minDeleted && deleted > this.#size) this.#copy();
  }

  clear(): void {
    this.#entries = new Map();
    this.#size = 0;
  }

  /** Returns all values, in the order in which their keys were added. */
  values(): V[] {
    return [...this.#entries.values()].filter((value) => value !== undefined);
  }

  #copy(): void {
    const entries = new Map<K, V | undefined>();
    for (const [key, value] of this.#entries) if (value !== undefined) entries.set(key, value);
    this.#entries = entries;
  }
}
