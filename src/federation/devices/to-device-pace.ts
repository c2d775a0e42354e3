import { type Clock, sleep } from '../../kernel/clock.ts';
import { type RateLimit, RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * Number of to-device messages of one server that are queued at once, and in each second after that: a new session key of
 * a room with thousands of devices is queued at once, and the rest of one transaction within its time limit.
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
