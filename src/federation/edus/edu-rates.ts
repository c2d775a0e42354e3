import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * Rate limit per server for updates in ephemeral EDUs (typing, receipts, presence). Updates above the limit are
 * dropped. A server with some thousand active users stays below it.
 */
const limit = { per_second: 200, burst_count: 5_000 };

/** Maximum number of servers with a rate limit in memory. */
const maxServers = 10_000;

/** Limits the work that ephemeral EDUs of one server cause. */
export class EduRates {
  readonly #limiter: RateLimiter;

  constructor(clock: Clock) {
    this.#limiter = new RateLimiter(limit, clock, maxServers);
  }

  /** Whether one more update of the server may be processed. */
  allow(origin: string): boolean {
    return this.#limiter.tryTake(origin) === 0;
  }
}
