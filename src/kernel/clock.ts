/** A timer that can be cancelled. */
export interface Timer {
  cancel(): void;
}

/** Time as the whole program sees it; tests pass a clock of their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that only ever grow, for measuring. */
  monotonic(): number;
  /** Calls `callback` once after `delay` milliseconds. Does not keep the process alive. */
  setTimer(delay: number, callback: () => void): Timer;
}

/** Longest delay that the platform's timer takes (2^31 - 1 ms, about 25 days). */
const longestTimeout = 2_147_483_647;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delay, callback) {
    let handle: NodeJS.Timeout;
    const arm = (remaining: number) => {
      const step = Math.min(remaining, longestTimeout);
      handle = setTimeout(() => (remaining > step ? arm(remaining - step) : callback()), Math.max(0, step));
      handle.unref();
    };
    if (delay !== Number.POSITIVE_INFINITY) arm(delay);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Resolves after `delay` milliseconds, or at once when `signal` aborts. Never rejects. */
export function sleep(clock: Clock, delay: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = clock.setTimer(delay, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}
