import type { Clock } from './clock.ts';

/** Milliseconds of work after which others come first. */
const usualSlice = 4;

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
}
