import type { Clock, Timer } from '../clock.ts';
import { TransactionTimeout } from './errors.ts';

/**
 * Rejects when the work of a transaction has sent no statement for `limit` milliseconds. Time spent in statements
 * does not count, so that slow statements are not taken for hanging work.
 */
export class IdleGuard {
  readonly #clock: Clock;
  readonly #limit: number;
  #running = 0;
  #idleSince: number;

  constructor(clock: Clock, limit: number) {
    this.#clock = clock;
    this.#limit = limit;
    this.#idleSince = clock.monotonic();
  }

  /** Runs a statement of the transaction. */
  async during<T>(statement: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await statement();
    } finally {
      this.#running -= 1;
      this.#idleSince = this.#clock.monotonic();
    }
  }

  /** Settles like `work`; rejects with `TransactionTimeout` when the work hangs. */
  watch<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let timer: Timer;
      const check = () => {
        const idle = this.#running > 0 ? 0 : this.#clock.monotonic() - this.#idleSince;
        if (idle >= this.#limit) reject(new TransactionTimeout(`no statement for ${this.#limit} ms`));
        else timer = this.#clock.setTimer(this.#limit - idle, check);
      };
      timer = this.#clock.setTimer(this.#limit, check);
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}
