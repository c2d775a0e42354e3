/** Lets so many pieces of work through at a time, and so many wait. */
export class Gate {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(width: number, longestQueue: number) {
    this.#maxRunning = width;
    this.#maxWaiting = longestQueue;
  }

  /** Does the work when it is its turn; `undefined` at once when too many wait. */
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
