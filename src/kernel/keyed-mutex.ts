import { BriefMap } from './brief-map.ts';

interface Queue {
  /** Tasks that run or wait. */
  pending: number;
  /** Settles when the last task does. */
  last: Promise<unknown>;
}

/**
 * Runs one task at a time for each key, in the order of the calls; tasks of different keys run at the same time.
 * A key costs memory only while it has tasks.
 */
export class KeyedMutex {
  readonly #queues = new BriefMap<string, Queue>();

  /**
   * Runs `task` after all earlier tasks of `key` have settled; whether they failed does not matter. A task must not
   * wait for another one of its own key: neither would ever end.
   * @returns the result of `task`
   * @throws what `task` throws
   */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = { pending: 0, last: Promise.resolve() };
      this.#queues.set(key, queue);
    }
    const start = () => task();
    const result = queue.last.then(start, start);
    queue.last = result;
    queue.pending++;
    try {
      return await result;
    } finally {
      if (--queue.pending === 0) this.#queues.delete(key);
    }
  }

  /** Returns how many tasks of a key run or wait. */
  pending(key: string): number {
    return this.#queues.get(key)?.pending ?? 0;
  }

  /** How many keys have tasks. */
  get size(): number {
    return this.#queues.size;
  }
}
