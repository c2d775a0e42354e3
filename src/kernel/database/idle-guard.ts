import type { Clock, Timer } from '../clock.ts';
import { TransactionTimeout } from './errors.ts';

/**
 * Watches over the work of one transaction: gives it up when it has sent no statement for `limit` milliseconds. The
 * time that statements take does not count, so that slow statements are not mistaken for work that hangs.
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

  /** Runs a statement of the work. */
  async during<T>(statement: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await statement();
    } finally {
      this.#running -= 1;
      this.#idleSince = this.#clock.monotonic();
    }
  }

  /** Settles as `work` does; rejects with `TransactionTimeout` when it hangs. */
  watch<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let timer: Timer;
      const look = () => {
        const idle = this.#running > 0 ? 0 : this.#clock.monotonic() - this.#idleSince;
        if (idle >= this.#limit) reject(new TransactionTimeout(`no statement for ${this.#limit} ms`));
        else timer = this.#clock.setTimer(this.#limit - idle, look);
      };
      timer = this.#clock.setTimer(this.#limit, look);
      work.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}
