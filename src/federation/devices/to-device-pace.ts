import { type Clock, sleep } from '../../kernel/clock.ts';
import { type RateLimit, RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * Limit of the to-device messages of one server: 10,000 without a delay, and 2,000 in each second after that, so that a
 * new session key for a room with thousands of devices is not delayed.
 */
const defaultLimit = { per_second: 2_000, burst_count: 10_000 };

/** Maximum number of servers whose messages are counted. */
const maxServers = 10_000;

/**
 * Delays servers that send very many to-device messages. The messages must not be dropped, so the transaction of the
 * server waits before its next EDU is handled.
 */
export class ToDevicePace {
  readonly #clock: Clock;
  readonly #limiter: RateLimiter;
  readonly #burst: number;

  /** @param limit the limit of each server; only tests pass another */
  constructor(clock: Clock, limit: RateLimit = defaultLimit) {
    this.#clock = clock;
    this.#burst = limit.burst_count;
    this.#limiter = new RateLimiter(limit, clock, maxServers);
  }

  /** Counts messages that a server has just queued, and waits until its limit allows them. */
  async countAndWait(server: string, count: number): Promise<void> {
    // A cost above the burst would never be allowed.
    for (let left = count; left > 0; left -= this.#burst) {
      const cost = Math.min(left, this.#burst);
      for (let delay = this.#limiter.tryTake(server, cost); delay > 0; ) {
        await sleep(this.#clock, delay);
        delay = this.#limiter.tryTake(server, cost);
      }
    }
  }
}
