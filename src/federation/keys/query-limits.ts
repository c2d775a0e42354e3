import type { Clock } from '../../kernel/clock.ts';
import { addressKey, RateLimiter } from '../../kernel/rate-limits/index.ts';
import { limitExceeded } from '../../protocol/index.ts';

/**
 * Servers whose keys one client address may query: enough for the members of some large rooms at once, after a server
 * has joined them. The rate is low, because the responses of servers with invented names are stored, too.
 */
const serversOfAddress = { per_second: 2, burst_count: 10_000 };

/**
 * Maximum number of answers that are sent at the same time, to one client address and in all: each has up to 1 MiB in
 * memory.
 */
const [maxAnswersOfAddress, maxAnswers] = [8, 64];

/** Milliseconds after which a query may be repeated that was refused because too many answers were being sent. */
const retryAfter = 1_000;

/** Bounds the work that queries for keys of other servers cause: they need no authentication, so anyone may send them. */
export class QueryLimits {
  readonly #servers: RateLimiter;
  readonly #answers = new Map<string, number>();
  #total = 0;

  constructor(clock: Clock) {
    this.#servers = new RateLimiter(serversOfAddress, clock);
  }

  /** Counts a query. @param servers number of servers whose keys it asks for @throws MatrixError M_LIMIT_EXCEEDED */
  admit(ip: string, servers: number): void {
    this.#servers.take(ip, Math.max(1, servers));
  }

  /**
   * Counts an answer until it has been sent, or sending it has failed.
   * @throws MatrixError M_LIMIT_EXCEEDED when too many answers are being sent
   */
  beginAnswer(ip: string, wasSent: Promise<boolean>): void {
    const address = addressKey(ip);
    const count = this.#answers.get(address) ?? 0;
    if (count >= maxAnswersOfAddress || this.#total >= maxAnswers) throw limitExceeded(retryAfter);
    this.#answers.set(address, count + 1);
    this.#total += 1;
    void wasSent.finally(() => this.#ended(address));
  }

  #ended(address: string): void {
    this.#total -= 1;
    const left = this.#answers.get(address)! - 1;
    if (left > 0) this.#answers.set(address, left);
    else this.#answers.delete(address);
  }
}
