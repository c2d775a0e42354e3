import type { Clock } from '../../../src/kernel/clock.ts';

/** A clock that makes everybody's waiting short: timers fire at once, and time has passed then. */
export interface EagerClock extends Clock {
  /** What was waited for, in milliseconds. */
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
