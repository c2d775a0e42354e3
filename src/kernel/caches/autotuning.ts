import type { CachesConfig } from './config.ts';

/** A cache whose entries can be dropped to free memory. */
export interface Shrinkable {
  /**
   * Drops the least recently used entries: at most `share` of all entries, and none used after `usedBefore`.
   */
  dropOldest(share: number, usedBefore: number): void;
}

/** Milliseconds between two checks of the memory use. */
export const autotuningInterval = 5_000;

/**
 * Share of its entries that each cache drops per check. It is small, because the freed memory shows only after garbage
 * collection.
 */
const share = 0.1;

/** Bytes of memory in use by objects and buffers of the process. */
export function memoryInUse(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Drops cache entries from the moment memory use exceeds a maximum until it falls to a target. */
export class Autotuning {
  readonly #maxUse: number;
  readonly #targetUse: number;
  readonly #minTtl: number;
  #isEvicting = false;

  private constructor(maxUse: number, targetUse: number, minTtl: number) {
    this.#maxUse = maxUse;
    this.#targetUse = targetUse;
    this.#minTtl = minTtl;
  }

  /** Returns `undefined` when autotuning is not configured. */
  static of({ caches: { cache_autotuning: tuning } }: CachesConfig): Autotuning | undefined {
    if (tuning === null) return undefined;
    const {
      max_cache_memory_usage: maxUse,
      target_cache_memory_usage: targetUse,
      min_cache_ttl: minTtl,
    } = tuning;
    if (maxUse === null || targetUse === null || minTtl === null) return undefined;
    return new Autotuning(maxUse, targetUse, minTtl);
  }

  /**
   * Drops entries from `caches` while memory use is too high.
   * @param use bytes in use
   * @param now milliseconds of the clock with which caches record the use of entries
   */
  check(use: number, now: number, caches: Iterable<Shrinkable>): void {
    if (use > this.#maxUse) this.#isEvicting = true;
    else if (use <= this.#targetUse) this.#isEvicting = false;
    if (!this.#isEvicting) return;
    for (const cache of caches) cache.dropOldest(share, now - this.#minTtl);
  }
}
