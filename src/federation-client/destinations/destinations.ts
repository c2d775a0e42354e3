import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import { type Clock, sleep } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, writerFor } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { type Randomness, randomFraction } from '../../kernel/randomness.ts';
import type { FederationClientConfig } from '../config.ts';
import type { Spelling } from '../spelling.ts';
import { type Destination, readAnswering, readDestination, writeDestination } from './store.ts';
import type { DestinationTables } from './tables.ts';

export interface DestinationsDeps {
  readonly database: Database;
  readonly caches: CacheRegistry;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly log: Logger;
  readonly options: FederationClientConfig['federation'];
}

/** Maximum number of servers in memory at cache factor 1. */
const cacheSize = 10_000;

/**
 * Minimum milliseconds between attempts. A server may send many requests but accept none: it must not be retried after
 * each request that it sends.
 */
const minPause = 1_000;

/** Minimum milliseconds between two requests for users (`FederationRequest.isForUser`) to a server in backoff. */
const userPause = 10_000;

/** Maximum number of servers in backoff for which the time of the last request for a user is kept. */
const maxTriedForUsers = 10_000;

/**
 * Facts about other servers: whether they can be reached, their backoff, and the prefix of their paths (`Spelling`).
 * The facts survive restarts of this server.
 */
export class Destinations {
  readonly #deps: DestinationsDeps;
  readonly #known: Cache<string, Destination>;
  /** When a server in backoff last received a request that a user waited for, in milliseconds since the epoch. */
  readonly #triedForUsers: Cache<string, number>;
  readonly #listeners = new Set<(serverName: string) => void>();
  /** By server name: one controller for each waiting retry; aborted when the server turns out to be reachable. */
  readonly #pauses = new Map<string, Set<AbortController>>();

  constructor(deps: DestinationsDeps) {
    this.#deps = deps;
    this.#known = deps.caches.create('federation_destinations', {
      size: cacheSize,
      maxBytes: 3 * MiB,
      sizeOf: () => 120,
    });
    this.#triedForUsers = deps.caches.create('servers_tried_for_users', {
      // Fixed, because the pauses protect other servers from requests.
      fixed: true,
      size: maxTriedForUsers,
      isExpired: (triedAt) => triedAt + userPause <= deps.clock.now(),
    });
  }

  /** Returns the known facts about a server. */
  get(serverName: string): Destination | Promise<Destination> {
    return this.#known.getOrLoad(serverName, (name) => readDestination(this.#deps.database.reader(), name));
  }

  /** Returns those of the servers that have ever answered a request, inside the caller's transaction. */
  thatAnswered(writer: AnyWriter, serverNames: readonly string[]): Promise<ReadonlySet<string>> {
    return readAnswering(writerFor<DestinationTables>(writer), serverNames);
  }

  /**
   * Returns the end of a server's backoff in milliseconds since the epoch; `undefined` when requests may be sent to it.
   */
  async backoffUntil(serverName: string): Promise<number | undefined> {
    const { retryLastTs, retryInterval } = await this.get(serverName);
    const until = retryLastTs + retryInterval;
    return until > this.#deps.clock.now() ? until : undefined;
  }

  /**
   * Returns whether a request for a user may be sent to a server in backoff: at most one in `userPause`. Takes the
   * request as sent when it may.
   */
  async tryForUser(serverName: string): Promise<boolean> {
    const { retryLastTs } = await this.get(serverName);
    const now = this.#deps.clock.now();
    const lastTriedAt = Math.max(retryLastTs, this.#triedForUsers.get(serverName) ?? 0);
    if (now - lastTriedAt < userPause) return false;
    this.#triedForUsers.set(serverName, now);
    return true;
  }

  /**
   * Calls `listener` with the name of each server that becomes reachable again.
   * @returns a function that unsubscribes
   */
  onReturn(listener: (serverName: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Waits before a retry. Waits less than `delay` when the server turns out to be reachable before that.
   * @param delay maximum milliseconds
   * @param signal ends the wait early
   */
  async waitForRetry(serverName: string, delay: number, signal?: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const begunAt = clock.monotonic();
    const reachable = new AbortController();
    const pauses = this.#pauses.get(serverName) ?? new Set();
    this.#pauses.set(serverName, pauses.add(reachable));
    await sleep(clock, delay, signal ? AbortSignal.any([signal, reachable.signal]) : reachable.signal);
    pauses.delete(reachable);
    if (pauses.size === 0) this.#pauses.delete(serverName);
    const remainingPause = Math.min(delay, minPause) - (clock.monotonic() - begunAt);
    if (reachable.signal.aborted && remainingPause > 0) await sleep(clock, remainingPause, signal);
  }

  /** Records a response or a request of a server: ends its backoff. */
  async recordSuccess(serverName: string): Promise<void> {
    for (const reachable of this.#pauses.get(serverName) ?? []) reachable.abort();
    const before = await this.get(serverName);
    if (before.failureSince === undefined && before.retryInterval === 0) return;
    await this.#set(serverName, { ...before, failureSince: undefined, retryLastTs: 0, retryInterval: 0 });
    for (const listener of this.#listeners) listener(serverName);
  }

  /**
   * Ends the backoff of a server on behalf of an administrator, and lets the waiting requests try again.
   * @returns false for a server without backoff
   */
  async endBackoff(serverName: string): Promise<boolean> {
    const { failureSince, retryInterval } = await this.get(serverName);
    if (failureSince === undefined && retryInterval === 0) return false;
    await this.recordSuccess(serverName);
    return true;
  }

  /**
   * Records a failed request: starts or extends the backoff. Of requests that fail together, only the first counts.
   * @param begunAt when the request began, in milliseconds since the epoch
   */
  async recordFailure(serverName: string, begunAt: number): Promise<void> {
    const before = await this.get(serverName);
    if (before.retryInterval > 0 && begunAt <= before.retryLastTs) return;
    const now = this.#deps.clock.now();
    const { destination_min_retry_interval: minInterval, destination_max_retry_interval: maxInterval } =
      this.#deps.options;
    const next = before.retryInterval === 0 ? minInterval : this.#nextInterval(before.retryInterval);
    const retryInterval = Math.min(next, maxInterval, Number.MAX_SAFE_INTEGER);
    this.#deps.log.info({ destination: serverName, retryInterval }, 'A server cannot be reached');
    const failureSince = before.failureSince ?? now;
    await this.#set(serverName, { ...before, failureSince, retryLastTs: now, retryInterval });
  }

  /** Records the prefix of the paths that a server answers. */
  async recordSpelling(serverName: string, spelling: Spelling): Promise<void> {
    const before = await this.get(serverName);
    if (before.spelling !== spelling) await this.#set(serverName, { ...before, spelling });
  }

  /**
   * Returns the next backoff in milliseconds: the last one times the configured multiplier, times a random number from
   * 0.8 to 1.4. The random number spreads the retries of servers that failed together.
   */
  #nextInterval(interval: number): number {
    const spread = 0.8 + 0.6 * randomFraction(this.#deps.randomness);
    return Math.round(interval * this.#deps.options.destination_retry_multiplier * spread);
  }

  async #set(serverName: string, destination: Destination): Promise<void> {
    this.#known.set(serverName, destination);
    await this.#deps.database.transaction<DestinationTables, void>((writer) =>
      writeDestination(writer, serverName, destination),
    );
  }
}
