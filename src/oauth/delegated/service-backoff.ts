import type { Clock } from '../../kernel/clock.ts';

/** Number of consecutive failures that cause the first pause. */
const failuresBeforePause = 3;

/** Milliseconds of the first pause, which doubles with each further failure. */
const firstPause = 1_000;

/** Maximum milliseconds of a pause. */
const maxPause = 30_000;

/** Pauses requests to a service that fails repeatedly. */
export class ServiceBackoff {
  readonly #clock: Clock;
  #failures = 0;
  /** End of the pause, in milliseconds of the monotonic clock. */
  #until = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until a request may be sent. */
  get remaining(): number {
    return Math.max(0, this.#until - this.#clock.monotonic());
  }

  /** Records a success, which ends the pause. */
  succeeded(): void {
    this.#failures = 0;
    this.#until = 0;
  }

  /** Records a failure; from the third consecutive failure on, each failure causes a pause. */
  failed(): void {
    this.#failures += 1;
    const excess = this.#failures - failuresBeforePause;
    if (excess < 0) return;
    this.#until = this.#clock.monotonic() + Math.min(maxPause, firstPause * 2 ** excess);
  }
}
