/** Limits the number of tasks that run at the same time, and of those that wait. */
export class Gate {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Runs `work` when a slot is free, in the order of the calls.
   * @returns its result; `undefined` at once when the maximum number of tasks wait already
   */
  async pass<T>(work: () => Promise<T>): Promise<T | undefined> {
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
