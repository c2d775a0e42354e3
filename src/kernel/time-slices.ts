import type { Clock } from './clock.ts';

/** Milliseconds of work after which others come first. */
const usualSlice = 4;

/** Steps of `each` between two looks at the clock. */
const stepsAtOnce = 50;

/** Cuts long work into slices, so that whatever else the event loop has to do waits a few milliseconds at the most. */
export class TimeSlices {
  readonly #clock: Clock;
  readonly #length: number;
  #begun: number;

  /** @param length milliseconds */
  constructor(clock: Clock, length = usualSlice) {
    this.#clock = clock;
    this.#length = length;
    this.#begun = clock.monotonic();
  }

  /** Between two steps: waits for a turn of the event loop when the slice is used up. `undefined`: go on. */
  rest(): Promise<void> | undefined {
    if (this.#clock.monotonic() - this.#begun < this.#length) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#begun = this.#clock.monotonic();
        resolve();
      });
    });
  }

  /** Takes one step for each item, and rests between them where that is due. Items may be added meanwhile. */
  async each<T>(items: Iterable<T>, step: (item: T) => void): Promise<void> {
    let taken = 0;
    for (const item of items) {
      step(item);
      if (++taken % stepsAtOnce !== 0) continue;
      const rest = this.rest();
      if (rest) await rest;
    }
  }

  /** Runs a computation that stops now and then, and rests there where that is due. */
  async through<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      const rest = this.rest();
      if (rest) await rest;
    }
  }
}
