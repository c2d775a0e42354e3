import type { Clock, Timer } from '../clock.ts';
import { OutboundError, requestAborted } from './errors.ts';

/** Aborts a request that takes too long or that its caller aborts. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;

  /**
   * @param timeout milliseconds
   * @param outer the signal of the caller
   */
  constructor(clock: Clock, timeout: number, outer?: AbortSignal) {
    this.#outer = outer;
    this.#timer = clock.setTimer(timeout, () =>
      this.#controller.abort(new OutboundError('timeout', 'No response arrived in time')),
    );
    if (outer?.aborted) this.#abort();
    else outer?.addEventListener('abort', this.#abort, { once: true });
  }

  /** Aborts with an `OutboundError` as its reason. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the deadline: the request is complete. */
  end(): void {
    this.#timer.cancel();
    this.#outer?.removeEventListener('abort', this.#abort);
  }

  readonly #abort = () => {
    this.#controller.abort(requestAborted(this.#outer?.reason));
  };
}
