/** Counts running work by key, for bounds on the concurrent work of one user or one address. */
export class CountByKey<K> {
  readonly #counts = new Map<K, number>();

  /** Returns how many calls of `during` are running for a key. */
  of(key: K): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Runs `work`, and counts it until its promise settles. @throws errors of the work */
  async during<T>(key: K, work: () => Promise<T>): Promise<T> {
    this.#counts.set(key, this.of(key) + 1);
    try {
      return await work();
    } finally {
      const left = this.of(key) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    }
  }
}
