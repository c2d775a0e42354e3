import type { Clock } from '../../../src/kernel/clock.ts';
import { eventually } from '../../clients/eventually.ts';

/**
 * The clock of the machine, with timers that a test can see and skip: a test waits until the server has set a timer,
 * and advances the time past it.
 */
export interface SkippableClock extends Clock {
  /**
   * Waits until a timer is set for a number of milliseconds in this range and has not fired. A server sets a timer
   * for the rest of a timeout, which is shorter than the timeout.
   */
  untilTimerRuns(range: readonly [from: number, to: number]): Promise<void>;
  /** Until `work` is done, skips every timer that is set for exactly `delay` milliseconds. @returns its result */
  skipping<T>(delay: number, work: Promise<T>): Promise<T>;
  /** Advances the time, and runs the timers that become due, in order. */
  advance(milliseconds: number): void;
}

interface RunningTimer {
  readonly delay: number;
  /** By the monotonic time of the clock, with the skipped time. */
  readonly due: number;
  readonly handle: NodeJS.Timeout;
  run(): void;
}

/** Maximum delay of the platform's timers. Longer delays are cut to it, because no test lasts so long. */
const maxDelay = 2_147_483_647;

export function skippableClock(): SkippableClock {
  let skipped = 0;
  const timers = new Set<RunningTimer>();
  const monotonic = () => performance.now() + skipped;
  const advance = (milliseconds: number) => {
    skipped += milliseconds;
    for (const timer of [...timers].sort((one, other) => one.due - other.due)) {
      if (timers.has(timer) && timer.due <= monotonic()) timer.run();
    }
  };
  return {
    now: () => Date.now() + skipped,
    monotonic,
    setTimer(delay, callback) {
      const run = () => {
        timers.delete(timer);
        clearTimeout(timer.handle);
        callback();
      };
      const handle = setTimeout(run, Math.min(Math.max(0, delay), maxDelay)).unref();
      const timer: RunningTimer = { delay, due: monotonic() + delay, handle, run };
      timers.add(timer);
      return {
        cancel: () => {
          clearTimeout(handle);
          timers.delete(timer);
        },
      };
    },
    async untilTimerRuns([from, to]) {
      const isInRange = ({ delay }: RunningTimer) => delay >= from && delay <= to;
      await eventually(`a timer of ${from} to ${to} ms`, () => [...timers].some(isInRange));
    },
    async skipping(delay, work) {
      let isDone = false;
      const done = () => {
        isDone = true;
      };
      work.then(done, done);
      await eventually('the work whose timers are skipped', () => {
        if (!isDone && [...timers].some((timer) => timer.delay === delay)) advance(delay);
        return isDone;
      });
      return work;
    },
    advance,
  };
}
