import type { Clock, Timer } from '../../kernel/clock.ts';

/** Minimum number of bytes that must arrive within an interval. */
const minBytes = 8 * 1024;

/** Milliseconds of an interval. */
const interval = 30_000;

/**
 * Ends a transfer that is too slow. Otherwise it would occupy one of the limited concurrent downloads for a long time.
 */
export class TransferWatch {
  readonly #clock: Clock;
  readonly #abort: () => void;
  #bytes = 0;
  #timer: Timer;

  /** @param abort is called when too few bytes have arrived within an interval */
  constructor(clock: Clock, abort: () => void) {
    this.#clock = clock;
    this.#abort = abort;
    this.#timer = this.#wait();
  }

  /** Counts bytes that have arrived. */
  count(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Ends the watch. */
  stop(): void {
    this.#timer.cancel();
  }

  #wait(): Timer {
    return this.#clock.setTimer(interval, () => {
      if (this.#bytes < minBytes) return this.#abort();
      this.#bytes = 0;
      this.#timer = this.#wait();
    });
  }
}
