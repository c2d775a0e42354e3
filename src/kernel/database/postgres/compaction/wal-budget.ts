import { type Clock, sleep } from '../../../clock.ts';

const minute = 60_000;

/**
 * Bounds the write-ahead log that background work causes: work that has written more than the bytes of one minute
 * waits.
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
   * Counts bytes of the log that were written. Waits while more than the bytes of one minute are counted, unless the
   * signal aborts: bytes stop being counted as time passes.
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
