import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../clock.ts';

/** The resources that this process uses. Times are milliseconds, sizes are bytes. */
export interface ProcessUsage {
  /** When the process was started, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** Processor time of all threads since the start. */
  readonly cpu: number;
  /** Memory that the process occupies. */
  readonly residentMemory: number;
  /** Used part of the JavaScript heap. */
  readonly heap: number;
  /** Time for which the event loop was busy since the start. */
  readonly busy: number;
  /**
   * Event loop lag of the last seconds; `undefined` at the first reading, and at the first one after a minute without a
   * reading. Readings within four seconds have the same lag.
   */
  readonly lag: { readonly mean: number; readonly max: number } | undefined;
}

/** Interval at which the event loop lag is measured, in milliseconds. Each measured delay includes it. */
const resolution = 20;

/**
 * Minimum length of one measurement of the event loop lag in milliseconds: earlier readings return the lag of the
 * previous measurement.
 */
const minWindow = 4_000;

/** Milliseconds without a reading after which the event loop lag is not measured any more. */
const maxPause = 60_000;

/**
 * Reads the resources that this process uses. Measures the event loop lag only while it is read at least once a minute.
 */
export class ProcessReading {
  readonly #clock: Clock;
  #delay: ReturnType<typeof monitorEventLoopDelay> | undefined;
  #pause: Timer | undefined;
  #lag: ProcessUsage['lag'];
  /** Start of the measurement of the lag, in monotonic milliseconds. */
  #since = 0;

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  read(): ProcessUsage {
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    return {
      startedAt: Math.round(performance.timeOrigin),
      cpu: (user + system) / 1000,
      residentMemory: memory.rss,
      heap: memory.heapUsed,
      busy: performance.eventLoopUtilization().active,
      lag: this.#readLag(),
    };
  }

  /** Ends the measurement of the event loop lag. */
  stop(): void {
    this.#pause?.cancel();
    this.#delay?.disable();
    this.#delay = undefined;
    this.#lag = undefined;
  }

  #readLag(): ProcessUsage['lag'] {
    this.#pause?.cancel();
    this.#pause = this.#clock.setTimer(maxPause, () => this.stop());
    if (this.#delay === undefined) {
      this.#delay = monitorEventLoopDelay({ resolution });
      this.#delay.enable();
      this.#since = this.#clock.monotonic();
      return undefined;
    }
    if (this.#lag && this.#clock.monotonic() - this.#since < minWindow) return this.#lag;
    const { mean, max } = this.#delay;
    this.#delay.reset();
    this.#since = this.#clock.monotonic();
    this.#lag = { mean: lagOf(mean), max: lagOf(max) };
    return this.#lag;
  }
}

/**
 * Converts a measured delay from nanoseconds to a lag in milliseconds. The lag is 0 where nothing was
 * measured.
 */
function lagOf(delay: number): number {
  return delay > 0 && Number.isFinite(delay) ? Math.max(0, delay / 1e6 - resolution) : 0;
}
