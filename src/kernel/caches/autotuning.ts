import type { CachesConfig } from './config.ts';

/** What can be taken away from a cache. */
export interface Shrinkable {
  /** Drops entries that were used longest ago: that share of all, but none that was used after `usedBefore`. */
  dropOldest(share: number, usedBefore: number): void;
}

/** How often memory is looked at, in milliseconds. */
export const autotuningInterval = 5_000;

/** The part of its entries that each cache gives away at a look. What is dropped is measured once it is collected. */
const share = 0.1;

/** Memory in use by the program's objects and buffers, in bytes. */
export function memoryInUse(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Makes caches give memory back: from when too much is in use until little enough is. */
export class Autotuning {
  readonly #most: number;
  readonly #target: number;
  readonly #spared: number;
  #isEvicting = false;

  private constructor(most: number, target: number, spared: number) {
    this.#most = most;
    this.#target = target;
    this.#spared = spared;
  }

  /** `undefined` when the configuration asks for none. */
  static of({ caches: { cache_autotuning: tuning } }: CachesConfig): Autotuning | undefined {
    if (tuning === null) return undefined;
    const { max_cache_memory_usage: most, target_cache_memory_usage: target, min_cache_ttl: spared } = tuning;
    if (most === null || target === null || spared === null) return undefined;
    return new Autotuning(most, target, spared);
  }

  /** @param use bytes in use @param now milliseconds, on the clock by which caches know when entries were used */
  look(use: number, now: number, caches: Iterable<Shrinkable>): void {
    if (use > this.#most) this.#isEvicting = true;
    else if (use <= this.#target) this.#isEvicting = false;
    if (!this.#isEvicting) return;
    for (const cache of caches) cache.dropOldest(share, now - this.#spared);
  }
}
