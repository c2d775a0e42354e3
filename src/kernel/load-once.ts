import { BriefMap } from './brief-map.ts';

/**
 * Shares one load among concurrent callers of the same key. A load is remembered only while it runs: its result, or its
 * failure, reaches the callers that wait for it, and the next caller loads again. An owner that caches results passes
 * `keep`.
 */
export class LoadOnce<K, V> {
  readonly #running = new BriefMap<K, Promise<V>>();

  /**
   * Joins the running load of `key`, or starts one.
   * @param load is called at once, unless a load of `key` is running
   * @param keep is called with the result before any caller receives it, unless `forget` was called while the load ran
   * @throws what `load` throws, to all callers that wait for it
   */
  run(key: K, load: () => Promise<V>, keep?: (value: V) => void): Promise<V> {
    return this.#running.get(key) ?? this.#start(key, load, keep);
  }

  /** Returns the running load of a key, if there is one. */
  get(key: K): Promise<V> | undefined {
    return this.#running.get(key);
  }

  /**
   * Makes the next caller of `key` load again, although a load is running, because its result may be outdated. Callers
   * that wait for the running load still receive its result.
   */
  forget(key: K): void {
    this.#running.delete(key);
  }

  /** `forget` for all keys. */
  forgetAll(): void {
    this.#running.clear();
  }

  /** Number of running loads, without forgotten ones. */
  get size(): number {
    return this.#running.size;
  }

  /**
   * Resolves when no load is running, including loads that start in the meantime. Does not wait for forgotten loads.
   */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running.values());
  }

  #start(key: K, load: () => Promise<V>, keep: ((value: V) => void) | undefined): Promise<V> {
    const result = load();
    const finish = async () => {
      try {
        const value = await result;
        if (keep && this.#running.get(key) === running) keep(value);
        return value;
      } finally {
        if (this.#running.get(key) === running) this.#running.delete(key);
      }
    };
    const running: Promise<V> = finish();
    this.#running.set(key, running);
    return running;
  }
}
