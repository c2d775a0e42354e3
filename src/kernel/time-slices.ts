import type { Clock } from './clock.ts';

/** Default milliseconds of work before control returns to the event loop. */
const defaultSliceMs = 4;

/** Steps of `each` between two checks of the clock. */
const stepsPerCheck = 50;

/**
 * Cuts long computations into time slices. After each slice, other work of the event loop has its turn, so that the
 * other work waits a few milliseconds at most.
 */
export class TimeSlices {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #lengthMs: number;
  #startedAt: number;
  /** Functions that end the pauses of the computations that wait for a turn of the event loop. */
  readonly #waiting: (() => void)[] = [];

  /** @param lengthMs milliseconds of work per time slice */
  constructor(clock: Pick<Clock, 'monotonic'>, lengthMs = defaultSliceMs) {
    this.#clock = clock;
    this.#lengthMs = lengthMs;
    this.#startedAt = clock.monotonic();
  }

  /**
   * Waits for a turn of the event loop if the slice is used up. Call it between two steps. `undefined`: continue at
   * once. When several computations wait, only one continues in each turn, so that their slices do not add up.
   */
  pauseIfDue(): Promise<void> | undefined {
    if (this.#clock.monotonic() - this.#startedAt < this.#lengthMs) return undefined;
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) setImmediate(this.#continue);
    });
  }

  readonly #continue = (): void => {
    this.#startedAt = this.#clock.monotonic();
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#continue);
  };

  /** Calls `step` for each item, with pauses where due. Items may be added to `items` while it runs. */
  async each<T>(items: Iterable<T>, step: (item: T) => void): Promise<void> {
    let taken = 0;
    for (const item of items) {
      step(item);
      if (++taken % stepsPerCheck !== 0) continue;
      const pause = this.pauseIfDue();
      if (pause) await pause;
    }
  }

  /** Runs a generator to its end, with pauses where due at each `yield`, and returns its result. */
  async run<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      const pause = this.pauseIfDue();
      if (pause) await pause;
    }
  }
}
