import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * How many things one server may tell of in EDUs that nobody misses (who types, who has read what, who is online): a
 * server with some thousand active users stays below it.
 */
const limit = { per_second: 200, burst_count: 5_000 };

/** Servers of which that is counted. */
const maxServers = 10_000;

/** Bounds the work that EDUs of one server cause. */
export class EduRates {
  readonly #limiter: RateLimiter;

  constructor(clock: Clock) {
    this.#limiter = new RateLimiter(limit, clock, maxServers);
  }

  /** Whether one thing more may be looked at. */
  allow(origin: string): boolean {
    return this.#limiter.tryTake(origin) === 0;
  }
}
