import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import type { Clock, Timer } from '../clock.ts';

/** Milliseconds between two readings of the size of the heap. */
const interval = 5_000;

const mebibyte = 1024 * 1024;

/**
 * Bytes by which the old generation may grow at least, unless `maxPercent` of its size are fewer.
 */
const minGrowth = 32 * mebibyte;

/** Maximum growth of the old generation between two collections, in percent of its size. */
const maxPercent = 200;

/** The percentage that `hearth serve` sets at its start (`bin/memory-settings.js`). */
const percentAtStart = 40;

const flag = '--heap-growing-percent=';

export interface HeapGrowthDeps {
  readonly clock: Clock;
  /** Parameters of Node with which the process was started. */
  readonly parameters?: readonly string[];
  /** Returns the bytes of live and dead objects. */
  readonly heapSize?: () => number;
  /** Sets how much the old generation may grow until it is collected, in percent. */
  readonly setPercent?: (percent: number) => void;
}

/**
 * Lets the old generation of a small heap grow by some MiB between two full collections: with the percentage that suits
 * a large heap, a small one would be collected every second under load. A percentage that the operator has set stays.
 */
export class HeapGrowth {
  readonly #clock: Clock;
  readonly #heapSize: () => number;
  readonly #setPercent: (percent: number) => void;
  #timer: Timer | undefined;
  #percent = percentAtStart;

  constructor({ clock, parameters = process.execArgv, heapSize, setPercent }: HeapGrowthDeps) {
    this.#clock = clock;
    this.#heapSize = heapSize ?? (() => getHeapStatistics().used_heap_size);
    this.#setPercent = setPercent ?? ((percent) => setFlagsFromString(`${flag}${percent}`));
    if (parameters.includes(`${flag}${percentAtStart}`)) this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimer(interval, () => {
      this.#adapt();
      this.#schedule();
    });
  }

  #adapt(): void {
    const wanted = Math.round((100 * minGrowth) / this.#heapSize());
    const percent = Math.min(Math.max(wanted, percentAtStart), maxPercent);
    if (percent === this.#percent) return;
    this.#percent = percent;
    this.#setPercent(percent);
  }
}
