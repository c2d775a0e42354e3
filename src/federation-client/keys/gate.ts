/** Limits how many tasks run and how many wait. */
export class Gate {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(width: number, maxWaiting: number) {
    this.#maxRunning = width;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Runs `work` when a slot is free, in the order of the calls; returns `undefined` at once when too many
   * wait.
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
