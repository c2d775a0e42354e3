import { type Clock, sleep } from '../../kernel/clock.ts';

/** Requests that wait for an upload. */
export class Arrivals {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Asks `look` until it finds something or the time is over.
   * @param patience milliseconds
   * @param signal ends the waiting as well
   */
  async wait<T>(
    mediaId: string,
    look: () => Promise<T | undefined>,
    patience: number,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const end = this.#clock.monotonic() + patience;
    for (;;) {
      const watch = this.#watch(mediaId, signal);
      try {
        const found = await look();
        const left = end - this.#clock.monotonic();
        if (found !== undefined || left <= 0 || signal.aborted) return found;
        await sleep(this.#clock, left, watch.signal);
      } finally {
        watch.end();
      }
    }
  }

  /** It is there: after its row has been committed. */
  announce(mediaId: string): void {
    for (const wake of this.#waiting.get(mediaId) ?? []) wake();
  }

  #watch(mediaId: string, outer: AbortSignal): { readonly signal: AbortSignal; readonly end: () => void } {
    const arrived = new AbortController();
    const wake = () => arrived.abort();
    const waiting = this.#waiting.get(mediaId) ?? new Set();
    this.#waiting.set(mediaId, waiting.add(wake));
    return {
      signal: AbortSignal.any([arrived.signal, outer]),
      end: () => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(mediaId) === waiting) this.#waiting.delete(mediaId);
      },
    };
  }
}
