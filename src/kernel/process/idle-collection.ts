import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock, Timer } from '../clock.ts';

/** Milliseconds between two measurements of the CPU time. */
const sampleInterval = 5_000;

/** Milliseconds without load after which memory is released. */
const quietTime = 20_000;

/** Maximum share of one CPU that a quiet process uses. */
const maxShare = 0.05;

/** Bytes by which the heap must have grown since `IdleCollection` last collected garbage. */
const minGrowth = 8 * 1024 * 1024;

export interface IdleCollectionDeps {
  readonly clock: Clock;
  /** Returns the CPU time of the process so far, in microseconds. */
  readonly cpuTime?: () => number;
  /** Returns the bytes of live and dead objects. */
  readonly heapSize?: () => number;
  /** Collects garbage. */
  readonly collect?: () => Promise<unknown>;
}

/**
 * Collects garbage once when the process has been quiet for 20 seconds and its heap has grown by 8 MiB since the last
 * time: V8 collects garbage only while objects are allocated, so a process that has become quiet would keep its memory.
 */
export class IdleCollection {
  readonly #clock: Clock;
  readonly #cpuTime: () => number;
  readonly #heapSize: () => number;
  readonly #collect: () => Promise<unknown>;
  #timer: Timer | undefined;
  #cpuTimeBefore: number;
  #quietMilliseconds = 0;
  #heapAfterCollection = 0;

  constructor({ clock, cpuTime, heapSize, collect }: IdleCollectionDeps) {
    this.#clock = clock;
    this.#cpuTime = cpuTime ?? cpuTimeOfProcess;
    this.#heapSize = heapSize ?? (() => process.memoryUsage().heapUsed);
    this.#collect = collect ?? collector();
    this.#cpuTimeBefore = this.#cpuTime();
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimer(sampleInterval, () => {
      const used = this.#cpuTime();
      const isQuiet = used - this.#cpuTimeBefore <= maxShare * sampleInterval * 1_000;
      this.#cpuTimeBefore = used;
      const before = this.#quietMilliseconds;
      this.#quietMilliseconds = isQuiet ? before + sampleInterval : 0;
      if (before < quietTime && this.#quietMilliseconds >= quietTime) void this.#collectIfGrown();
      this.#schedule();
    });
  }

  async #collectIfGrown(): Promise<void> {
    if (this.#heapSize() < this.#heapAfterCollection + minGrowth) return;
    await this.#collect();
    this.#heapAfterCollection = this.#heapSize();
    // The CPU time of the collection itself must not end the quiet period.
    this.#cpuTimeBefore = this.#cpuTime();
  }
}

function cpuTimeOfProcess(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Returns the garbage collector of V8. Programs can call it only after the flag `--expose-gc`. */
function collector(): () => Promise<unknown> {
  setFlagsFromString('--expose-gc');
  const collect: (options: object) => Promise<unknown> = runInNewContext('gc');
  return async () => {
    // Compaction also frees pages that have a few live objects; the flavor `last-resort` returns free pages to the system.
    setFlagsFromString('--compact-on-every-full-gc');
    await collect({ type: 'major', execution: 'async', flavor: 'last-resort' });
    setFlagsFromString('--no-compact-on-every-full-gc');
  };
}
