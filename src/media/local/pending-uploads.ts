import { type Clock, sleep } from '../../kernel/clock.ts';

/** Makes requests for a file wait while its upload is pending. */
export class PendingUploads {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Calls `look` at once and after each announcement, until it finds the upload or the timeout ends.
   * @param uploadTimeout milliseconds
   * @param signal ends the wait early
   */
  async wait<T>(
    mediaId: string,
    look: () => Promise<T | undefined>,
    uploadTimeout: number,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const end = this.#clock.monotonic() + uploadTimeout;
    for (;;) {
      const watch = this.#watch(mediaId, signal);
      try {
        const upload = await look();
        const remainingTime = end - this.#clock.monotonic();
        if (upload !== undefined || remainingTime <= 0 || signal.aborted) return upload;
        await sleep(this.#clock, remainingTime, watch.signal);
      } finally {
        watch.end();
      }
    }
  }

  /** Wakes the requests for an upload. Must be called after its row is committed. */
  announce(mediaId: string): void {
    for (const wake of this.#waiting.get(mediaId) ?? []) wake();
  }

  #watch(
    mediaId: string,
    requestSignal: AbortSignal,
  ): { readonly signal: AbortSignal; readonly end: () => void } {
    const arrived = new AbortController();
    const wake = () => arrived.abort();
    const waiting = this.#waiting.get(mediaId) ?? new Set();
    this.#waiting.set(mediaId, waiting.add(wake));
    return {
      signal: AbortSignal.any([arrived.signal, requestSignal]),
      end: () => {
        waiting.delete(wake);
        if (waiting.size === 0 && this.#waiting.get(mediaId) === waiting) this.#waiting.delete(mediaId);
      },
    };
  }
}
