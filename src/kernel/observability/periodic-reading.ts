import { type Clock, sleep } from '../clock.ts';

/**
 * Milliseconds that a scrape (a request for all metrics) waits for a running read. After this time it shows the values
 * of the last read.
 */
const maxWait = 2_000;

/**
 * Values of metrics whose reading costs queries. They are read at most once in `interval`, however often metrics are
 * scraped, and never twice at the same time.
 */
export class PeriodicReading<T> {
  readonly #clock: Clock;
  readonly #interval: number;
  readonly #read: () => Promise<T>;
  #last: T | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  /** @param interval milliseconds */
  constructor(clock: Clock, interval: number, read: () => Promise<T>) {
    this.#clock = clock;
    this.#interval = interval;
    this.#read = read;
  }

  /**
   * Reads the values again when the interval has passed, and returns the last values; `undefined` before the first
   * successful read.
   */
  async value(): Promise<T | undefined> {
    if (!this.#reading && this.#clock.monotonic() - this.#readAt >= this.#interval) {
      this.#readAt = this.#clock.monotonic();
      this.#reading = this.#readAgain().finally(() => {
        this.#reading = undefined;
      });
    }
    if (this.#reading) {
      const waiting = new AbortController();
      await Promise.race([this.#reading, sleep(this.#clock, maxWait, waiting.signal)]);
      waiting.abort();
    }
    return this.#last;
  }

  async #readAgain(): Promise<void> {
    try {
      this.#last = await this.#read();
    } catch {
      // An outage is logged and shown elsewhere: metrics then show the last values.
    }
  }
}
