import type { Clock } from '../../kernel/clock.ts';
import { addressKey, RateLimiter } from '../../kernel/rate-limits/index.ts';
import { limitExceeded } from '../../protocol/index.ts';

/**
 * Rate limit of the servers whose keys one IP address may query. A server that has just joined some large rooms can
 * query the keys of all their servers at once.
 */
const serversOfAddress = { per_second: 2, burst_count: 10_000 };

/**
 * Rate limit of the requests to other servers that the queries of one IP address may cause. A query causes requests
 * when the stored keys do not suffice. The rate is low: anyone may invent names of servers, and the responses of such
 * servers are stored, too.
 */
const requestsOfAddress = { per_second: 0.5, burst_count: 400 };

/** Rate limit of the requests to other servers that the queries of all addresses together may cause. */
const requestsOfAll = { per_second: 10, burst_count: 2_000 };

/** Maximum number of answers that are sent to one IP address at the same time. */
const maxAnswersOfAddress = 8;

/** Maximum number of answers that are sent to all addresses at the same time: each answer has up to 1 MiB in memory. */
const maxAnswers = 64;

/**
 * Milliseconds after which a client may repeat a query that was refused because too many answers were being sent.
 */
const retryAfter = 1_000;

/**
 * Bounds the work that queries for keys of other servers cause: they need no authentication, so anyone may send them.
 */
export class QueryLimits {
  readonly #servers: RateLimiter;
  readonly #requests: RateLimiter;
  readonly #allRequests: RateLimiter;
  /** Number of answers that are being sent, by `addressKey` of the IP address. */
  readonly #answers = new Map<string, number>();
  #total = 0;

  constructor(clock: Clock) {
    this.#servers = new RateLimiter(serversOfAddress, clock);
    this.#requests = new RateLimiter(requestsOfAddress, clock);
    this.#allRequests = new RateLimiter(requestsOfAll, clock, 1);
  }

  /** Counts a query. @param servers number of servers whose keys it requests @throws MatrixError M_LIMIT_EXCEEDED */
  admit(ip: string, servers: number): void {
    this.#servers.take(ip, Math.max(1, servers));
  }

  /** Counts a request to another server. @returns whether it may be sent */
  mayRequest(ip: string): boolean {
    return this.#requests.tryTake(ip) === 0 && this.#allRequests.tryTake('') === 0;
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
    const remaining = this.#answers.get(address)! - 1;
    if (remaining > 0) this.#answers.set(address, remaining);
    else this.#answers.delete(address);
  }
}
