import { setImmediate as realTurn } from 'node:timers';
import type { Timer } from '../../src/kernel/clock.ts';

interface Planned {
  readonly due: number;
  /** Of two that are due at the same time, the one that was planned first comes first. */
  readonly order: number;
  callback: (() => void) | undefined;
}

/** When simulated time begins, in milliseconds since the epoch. */
const beginning = 1_700_000_000_000;

/** Simulated time. It stands still while anybody has something to do, and then moves to the next timer. */
export class Scheduler {
  #now = beginning;
  #orders = 0;
  #heap: Planned[] = [];
  #immediates: (() => void)[] = [];

  /** Milliseconds since the epoch. */
  get now(): number {
    return this.#now;
  }

  /** Milliseconds since the beginning. */
  get elapsed(): number {
    return this.#now - beginning;
  }

  /** Calls `callback` after `delay` milliseconds. */
  after(delay: number, callback: () => void): Timer {
    const planned: Planned = { due: this.#now + Math.max(0, delay), order: this.#orders++, callback };
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

  /** What `setImmediate` is in a simulation. */
  soon(callback: () => void): void {
    this.#immediates.push(callback);
  }

  /** Lets time pass until `work` has settled. @throws when nothing is left to do before that */
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
      await this.#quiet();
      if (isSettled) return work;
      if (!this.#step()) throw new Error('everything waits for ever');
    }
  }

  /** Resolves when everybody waits for a timer, or for ever. */
  async #quiet(): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => void realTurn(resolve));
      const due = this.#immediates;
      if (due.length === 0) return;
      this.#immediates = [];
      for (const callback of due) callback();
    }
  }

  /** Moves on to the next timer. */
  #step(): boolean {
    for (let next = this.#pop(); next; next = this.#pop()) {
      if (!next.callback) continue;
      this.#now = next.due;
      next.callback();
      return true;
    }
    return false;
  }

  #push(planned: Planned): void {
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

  #pop(): Planned | undefined {
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

const isBefore = (one: Planned, other: Planned) =>
  one.due < other.due || (one.due === other.due && one.order < other.order);
