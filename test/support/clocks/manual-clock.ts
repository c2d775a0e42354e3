import type { Clock, Timer } from '../../../src/kernel/clock.ts';

/**
 * A clock that stands still until a test advances it. A timer that is due already when it is set runs in the next turn
 * of the event loop, as on the clock of the machine: code may have computed its delay before the clock was advanced.
 */
export interface ManualClock extends Clock {
  /** Advances the time and runs the timers that become due, in order. */
  advance(milliseconds: number): void;
}

/** @param start milliseconds since the epoch */
export function manualClock(start = 1_700_000_000_000): ManualClock {
  let now = start;
  const timers = new Set<{ due: number; callback: () => void }>();
  const runIfSet = (timer: { due: number; callback: () => void }) => {
    if (timers.delete(timer)) timer.callback();
  };
  return {
    now: () => now,
    monotonic: () => now - start,
    setTimer(delay, callback): Timer {
      const timer = { due: now + Math.max(0, delay), callback };
      timers.add(timer);
      if (timer.due <= now) setImmediate(runIfSet, timer);
      return { cancel: () => timers.delete(timer) };
    },
    advance(milliseconds) {
      const end = now + milliseconds;
      for (;;) {
        let next: { due: number; callback: () => void } | undefined;
        for (const timer of timers) if (timer.due < (next?.due ?? end + 1)) next = timer;
        if (next === undefined || next.due > end) break;
        timers.delete(next);
        now = next.due;
        next.callback();
      }
      now = end;
    },
  };
}
