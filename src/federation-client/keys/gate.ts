/** Lets so many pieces of work through at a time, and so many wait. */
export class Gate {
  readonly #width: number;
  readonly #longestQueue: number;
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  constructor(width: number, longestQueue: number) {
    this.#width = width;
    this.#longestQueue = longestQueue;
  }

  /** Does the work when it is its turn; `undefined` at once when too many wait. */
  async pass<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (this.#inside < this.#width) this.#inside++;
    else if (this.#waiting.length >= this.#longestQueue) return undefined;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }
}
