import { limitExceeded } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import type { RateLimit } from './config.ts';

interface Bucket {
  level: number;
  /** When `level` was true, in milliseconds. */
  at: number;
}

/** Buckets that are kept by default: each takes about 100 bytes. */
const defaultBound = 100_000;

/** Longest wait that a client is told, in milliseconds: with a rate of zero it would be for ever. */
const longestWait = 24 * 60 * 60 * 1000;

/**
 * A leaky bucket for each key. An action adds its cost, time drains the bucket, and what would overflow is refused.
 * Keeps a bounded number of buckets: empty ones are dropped, and when all are in use the one that was made first.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #bound: number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #isExempt: (key: string) => boolean;
  #limit: RateLimit;

  /** @param isExempt whether nothing is counted for a key */
  constructor(
    limit: RateLimit,
    clock: Clock,
    bound: number = defaultBound,
    isExempt: (key: string) => boolean = () => false,
  ) {
    this.#limit = limit;
    this.#clock = clock;
    this.#bound = bound;
    this.#isExempt = isExempt;
  }

  /** Number of buckets now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Applies another limit from now on. */
  configure(limit: RateLimit): void {
    this.#limit = limit;
  }

  /** Counts an action. @throws MatrixError M_LIMIT_EXCEEDED with `retry_after_ms`; the action is then not counted */
  take(key: string, cost = 1): void {
    const wait = this.tryTake(key, cost);
    if (wait > 0) throw limitExceeded(wait);
  }

  /** Refuses like `take`, but counts nothing: for limits on failures, which are counted when they happen. */
  check(key: string, cost = 1): void {
    const bucket = this.#buckets.get(key);
    const wait = this.#wait(bucket === undefined ? 0 : this.#drained(bucket, this.#clock.monotonic()), cost);
    if (wait > 0 && !this.#isExempt(key)) throw limitExceeded(wait);
  }

  /** Counts an action if there is room. @returns 0, or the milliseconds after which there will be room */
  tryTake(key: string, cost = 1): number {
    if (this.#isExempt(key)) return 0;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key);
    const level = bucket === undefined ? 0 : this.#drained(bucket, now);
    const wait = this.#wait(level, cost);
    if (wait > 0) return wait;
    if (bucket === undefined) {
      this.#makeRoom(now);
      this.#buckets.set(key, { level: cost, at: now });
    } else {
      bucket.level = level + cost;
      bucket.at = now;
    }
    return 0;
  }

  #drained(bucket: Bucket, now: number): number {
    return Math.max(0, bucket.level - ((now - bucket.at) * this.#limit.per_second) / 1000);
  }

  #wait(level: number, cost: number): number {
    const excess = level + cost - this.#limit.burst_count;
    // The drained level is a fraction that may be off by a rounding error.
    if (excess <= 1e-9) return 0;
    return Math.min(longestWait, Math.max(1, (excess * 1000) / this.#limit.per_second));
  }

  #makeRoom(now: number): void {
    if (this.#buckets.size < this.#bound) return;
    for (const [key, bucket] of this.#buckets) {
      if (this.#drained(bucket, now) === 0) this.#buckets.delete(key);
    }
    // Drops a tenth when none was empty, so that the search above is not made for every new key.
    let surplus = this.#buckets.size - Math.floor(this.#bound * 0.9);
    for (const key of this.#buckets.keys()) {
      if (surplus-- <= 0) break;
      this.#buckets.delete(key);
    }
  }
}
