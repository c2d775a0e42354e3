import { type Clock, sleep } from '../../kernel/clock.ts';
import { type RateLimit, RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * Number of to-device messages that one server may queue at once, and then in each second. A new session key for a room
 * with thousands of devices is queued at once. The remaining messages of a transaction are queued within the time limit
 * of the transaction.
 */
const defaultLimit = { per_second: 2_000, burst_count: 10_000 };

/** Maximum number of servers with a rate in memory. */
const maxServers = 10_000;

/**
 * Slows down servers that send to-device messages to very many devices: the messages must not be dropped, but they must
 * not occupy this server either.
 */
export class ToDevicePace {
  readonly #clock: Clock;
  readonly #limiter: RateLimiter;
  readonly #burst: number;

  /** @param limit messages of one server; set by tests */
  constructor(clock: Clock, limit: RateLimit = defaultLimit) {
    this.#clock = clock;
    this.#burst = limit.burst_count;
    this.#limiter = new RateLimiter(limit, clock, maxServers);
  }

  /** Waits until the server may queue more messages. @param count number of messages that it has just queued */
  async wait(server: string, count: number): Promise<void> {
    for (let left = count; left > 0; left -= this.#burst) {
      const cost = Math.min(left, this.#burst);
      for (let delay = this.#limiter.tryTake(server, cost); delay > 0; ) {
        await sleep(this.#clock, delay);
        delay = this.#limiter.tryTake(server, cost);
      }
    }
  }
}
