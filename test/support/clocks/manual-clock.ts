import type { Clock, Timer } from '../../../src/kernel/clock.ts';

/**
 * A clock that stands still until a test advances it. A timer that is due already when it is set runs in the next turn
 * of the event loop, as on the clock of the machine: code may have computed the delay before a test advanced the clock.
 */
export interface ManualClock extends Clock {
  /** Advances the time and runs the timers that become due, in order. */
  advance(milliseconds: number): void;
}

/** @param start milliseconds since the epoch */
export function manualClock(start = 1_700_000_000_000): ManualClock {
  let now = start;
  /** The timers by the time when they are due; timers of the same time are in the order in which they were set. */
  const timers = new Map<number, Set<{ readonly callback: () => void }>>();
  return {
    now: () => now,
    monotonic: () => now - start,
    setTimer(delay, callback): Timer {
      const due = now + Math.max(0, delay);
      const timer = { callback };
      const sameTime = timers.get(due) ?? new Set();
      timers.set(due, sameTime.add(timer));
      const cancel = () => {
        if (!sameTime.delete(timer)) return false;
        if (sameTime.size === 0) timers.delete(due);
        return true;
      };
      if (due <= now) setImmediate(() => cancel() && callback());
      return { cancel };
    },
    advance(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        const due = timers.keys().reduce((first, one) => Math.min(first, one), Number.POSITIVE_INFINITY);
        const sameTime = timers.get(due);
        if (sameTime === undefined || due > end) break;
        now = due;
        for (const timer of sameTime) {
          sameTime.delete(timer);
          timer.callback();
        }
        if (timers.get(due) === sameTime) timers.delete(due);
      }
      now = end;
    },
  };
}
