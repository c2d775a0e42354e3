/** A timer that can be cancelled. */
export interface Timer {
  cancel(): void;
}

/** Source of time for the whole program; tests pass a manual clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Monotonic milliseconds, for measuring durations. */
  monotonic(): number;
  /**
   * Calls `callback` once after `delay` milliseconds; never when `delay` is infinite. Does not keep the process alive.
   */
  setTimer(delay: number, callback: () => void): Timer;
}

/** Maximum delay of the platform's timers: 2^31 - 1 ms, about 25 days. Longer delays are split. */
const maxTimerDelay = 2_147_483_647;

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delay, callback) {
    let handle: NodeJS.Timeout;
    const arm = (remaining: number) => {
      const step = Math.min(remaining, maxTimerDelay);
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
