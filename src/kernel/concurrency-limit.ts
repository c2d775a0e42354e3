/** Limits the number of tasks that run at the same time, and the number of waiting tasks. */
export class ConcurrencyLimit {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /**
   * @param maxRunning maximum number of tasks that run at the same time
   * @param maxWaiting maximum number of tasks that wait
   */
  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Runs `work` when a slot is free, in the order of the calls.
   * @returns the result of `work`; `undefined` at once when too many tasks wait already
   */
  async run<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (this.#running < this.#maxRunning) this.#running++;
    else if (this.#waiting.length >= this.#maxWaiting) return undefined;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
