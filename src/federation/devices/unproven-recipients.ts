import type { Destinations } from '../../federation-client/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';

/**
 * Limit of the messages of one user to servers that have never answered: a burst of 1,000, and 36 an hour after that.
 * All messages of one request to one server count as one. Clients send messages to devices whose keys they know, so the
 * servers of nearly all recipients have answered.
 */
const limit = { per_second: 0.01, burst_count: 1_000 };

/**
 * Limits the to-device messages of each user to servers that have never answered a request. The server names may be
 * made up, and each of them costs a queue, attempts for weeks and one of the few slots for servers that may be
 * unreachable.
 */
export class UnprovenRecipients {
  readonly #destinations: Pick<Destinations, 'thatAnswered'>;
  readonly #limiter: RateLimiter;

  constructor(destinations: Pick<Destinations, 'thatAnswered'>, clock: Clock) {
    this.#destinations = destinations;
    this.#limiter = new RateLimiter(limit, clock);
  }

  /**
   * Returns the servers to which messages of a user may be sent, and counts those of them that have never answered. A
   * database transaction that runs again counts them again.
   * @param writer of the transaction that stores the messages: a second connection could be missing
   */
  async allowed(writer: AnyWriter, sender: string, servers: readonly string[]): Promise<ReadonlySet<string>> {
    const answered = await this.#destinations.thatAnswered(writer, servers);
    return new Set(servers.filter((name) => answered.has(name) || this.#limiter.tryTake(sender) === 0));
  }
}
