import { setImmediate as realSetImmediate } from 'node:timers';
import type { Timer } from '../../src/kernel/clock.ts';

interface PlannedCallback {
  readonly due: number;
  /** Of two callbacks that are due at the same time, the one planned first runs first. */
  readonly order: number;
  /** `undefined` when it was cancelled. */
  callback: (() => void) | undefined;
}

/** The start time of every simulation, in milliseconds since the epoch. */
const startTime = 1_700_000_000_000;

/** Simulated time. It stands still while any code runs, and then jumps to the next timer. */
export class Scheduler {
  #now = startTime;
  #orders = 0;
  #heap: PlannedCallback[] = [];
  #immediates: (() => void)[] = [];

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#now;
  }

  /** Milliseconds since the start. */
  get elapsed(): number {
    return this.#now - startTime;
  }

  /** Calls `callback` after `delay` milliseconds. */
  after(delay: number, callback: () => void): Timer {
    const planned: PlannedCallback = { due: this.#now + Math.max(0, delay), order: this.#orders++, callback };
    if (delay !== Number.POSITIVE_INFINITY) this.#push(planned);
    return {
      cancel: () => {
        planned.callback = undefined;
      },
    };
  }

  sleep(delay: number): Promise<void> {
    return new Promise((resolve) => void this.after(delay, resolve));
  }

  /** Stands for `setImmediate`. */
  immediately(callback: () => void): void {
    this.#immediates.push(callback);
  }

  /** Runs the simulation until `work` has settled. @throws when no timer is left before that */
  async run<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    work.then(
      () => {
        isSettled = true;
      },
      () => {
        isSettled = true;
      },
    );
    for (;;) {
      await this.#runImmediates();
      if (isSettled) return work;
      if (!this.#step()) throw new Error('deadlock: the work has not settled and no timer is left');
    }
  }

  /** Runs the callbacks of `immediately` until only timers are left. */
  async #runImmediates(): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => void realSetImmediate(resolve));
      const due = this.#immediates;
      if (due.length === 0) return;
      this.#immediates = [];
      for (const callback of due) callback();
    }
  }

  /** Jumps to the next timer and runs it. @returns whether there was one */
  #step(): boolean {
    for (let next = this.#pop(); next; next = this.#pop()) {
      if (!next.callback) continue;
      this.#now = next.due;
      next.callback();
      return true;
    }
    return false;
  }

  #push(planned: PlannedCallback): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(planned);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(planned, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = planned;
  }

  #pop(): PlannedCallback | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || !last) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

const isBefore = (one: PlannedCallback, other: PlannedCallback) =>
  one.due < other.due || (one.due === other.due && one.order < other.order);
