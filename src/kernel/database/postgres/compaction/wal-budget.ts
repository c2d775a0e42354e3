import { type Clock, sleep } from '../../../clock.ts';

const minute = 60_000;

/**
 * Bounds the write-ahead log that background work causes: work that has used more than the share of one minute waits.
 */
export class WalBudget {
  readonly #clock: Clock;
  readonly #bytesPerMinute: number;
  #used = 0;
  /** Reading of the monotonic clock up to which `#used` has been reduced. */
  #at: number;

  constructor(clock: Clock, bytesPerMinute: number) {
    this.#clock = clock;
    this.#bytesPerMinute = bytesPerMinute;
    this.#at = clock.monotonic();
  }

  /**
   * Adds bytes of the log to the budget's use; waits until at most one minute's share is in use, or the
   * signal aborts.
   */
  async spend(bytes: number, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic();
    const earned = ((now - this.#at) / minute) * this.#bytesPerMinute;
    this.#at = now;
    this.#used = Math.max(0, this.#used - earned) + Math.max(0, bytes);
    const excess = this.#used - this.#bytesPerMinute;
    if (excess > 0) await sleep(this.#clock, (excess / this.#bytesPerMinute) * minute, signal);
  }
}
