import { limitExceeded } from '../../protocol/index.ts';
import type { Clock } from '../clock.ts';
import { addressKey } from './address-key.ts';
import type { RateLimit } from './config.ts';

interface Bucket {
  level: number;
  /** Monotonic milliseconds at which `level` was computed. */
  updatedAt: number;
}

/** Default maximum number of buckets; each takes about 100 bytes. */
const defaultMaxBuckets = 100_000;

/** Maximum `retry_after_ms`, in milliseconds. With a rate of zero it would be infinite. */
const maxWait = 24 * 60 * 60 * 1000;

/**
 * A leaky bucket for each key; client addresses with the same `addressKey` share one. An action adds its cost to the
 * bucket, time drains the bucket, and an action that would overflow it is rejected. Bounds the number of buckets: drops
 * empty buckets and, if these are less than a tenth of the maximum, the buckets that were created first.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #maxBuckets: number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #isExempt: (key: string) => boolean;
  #limit: RateLimit;

  /**
   * @param maxBuckets maximum number of keys in memory
   * @param isExempt returns whether the actions of a key are never limited
   */
  constructor(
    limit: RateLimit,
    clock: Clock,
    maxBuckets: number = defaultMaxBuckets,
    isExempt: (key: string) => boolean = () => false,
  ) {
    this.#limit = limit;
    this.#clock = clock;
    this.#maxBuckets = maxBuckets;
    this.#isExempt = isExempt;
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Applies another limit to all later actions. */
  configure(limit: RateLimit): void {
    this.#limit = limit;
  }

  /**
   * Counts an action.
   * @throws MatrixError M_LIMIT_EXCEEDED with `retry_after_ms`; the action is then not counted
   */
  take(keyOrAddress: string, cost = 1): void {
    const wait = this.tryTake(keyOrAddress, cost);
    if (wait > 0) throw limitExceeded(wait);
  }

  /** Throws like `take`, but does not count the action. For limits on failures, which are counted when they happen. */
  check(keyOrAddress: string, cost = 1): void {
    const key = addressKey(keyOrAddress);
    const bucket = this.#buckets.get(key);
    const wait = this.#wait(bucket === undefined ? 0 : this.#drained(bucket, this.#clock.monotonic()), cost);
    if (wait > 0 && !this.#isExempt(key)) throw limitExceeded(wait);
  }

  /**
   * Counts an action if the limit allows it.
   * @returns 0, or the milliseconds until the limit allows it
   */
  tryTake(keyOrAddress: string, cost = 1): number {
    const key = addressKey(keyOrAddress);
    if (this.#isExempt(key)) return 0;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key);
    const level = bucket === undefined ? 0 : this.#drained(bucket, now);
    const wait = this.#wait(level, cost);
    if (wait > 0) return wait;
    if (bucket === undefined) {
      this.#makeSpace(now);
      this.#buckets.set(key, { level: cost, updatedAt: now });
    } else {
      bucket.level = level + cost;
      bucket.updatedAt = now;
    }
    return 0;
  }

  #drained(bucket: Bucket, now: number): number {
    return Math.max(0, bucket.level - ((now - bucket.updatedAt) * this.#limit.per_second) / 1000);
  }

  #wait(level: number, cost: number): number {
    const excess = level + cost - this.#limit.burst_count;
    // The drained level is a fraction and may have a rounding error.
    if (excess <= 1e-9) return 0;
    return Math.min(maxWait, Math.max(1, (excess * 1000) / this.#limit.per_second));
  }

  #makeSpace(now: number): void {
    if (this.#buckets.size < this.#maxBuckets) return;
    for (const [key, bucket] of this.#buckets) {
      if (this.#drained(bucket, now) === 0) this.#buckets.delete(key);
    }
    // Drops further buckets until a tenth is free, so that not every new key repeats the scan above.
    let surplus = this.#buckets.size - Math.floor(this.#maxBuckets * 0.9);
    for (const key of this.#buckets.keys()) {
      if (surplus-- <= 0) break;
      this.#buckets.delete(key);
    }
  }
}
