import type { Clock } from '../../../src/kernel/clock.ts';

/**
 * A clock whose timers fire in the next turn of the event loop, whatever their delay. When a timer fires, the clock
 * first advances by its delay.
 */
export interface EagerClock extends Clock {
  /** Delays of all timers so far, in milliseconds. */
  readonly delays: number[];
  advance(milliseconds: number): void;
}

export function eagerClock(start = 1_700_000_000_000): EagerClock {
  let now = start;
  const delays: number[] = [];
  return {
    delays,
    now: () => now,
    monotonic: () => now - start,
    setTimer(delay, callback) {
      let cancelled = false;
      delays.push(delay);
      setImmediate(() => {
        if (cancelled) return;
        now += delay;
        callback();
      });
      return {
        cancel: () => {
          cancelled = true;
        },
      };
    },
    advance(milliseconds) {
      now += milliseconds;
    },
  };
}
