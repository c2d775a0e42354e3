import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/** Milliseconds of the first backoff. */
const firstBackoff = 10_000;

/** Milliseconds of the longest backoff. */
const longestBackoff = 10 * 60_000;

/** When processing an event takes this many milliseconds or more, the server's next events wait. */
const slowProcessing = 2_000;

/** Maximum number of cached pairs of room and server. */
const maxRemembered = 10_000;

interface Backoff {
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** Milliseconds. */
  readonly length: number;
}

/**
 * Backoff of requests about one room to one server. A server that does not return what this server needs receives no
 * further request for a while; each failure doubles this time. After an event that took long to process, the server's
 * next incomplete event waits for as long as the processing took, so that one server takes at most half of the time of
 * a room's worker.
 */
export class QueryBackoff {
  readonly #clock: Clock;
  readonly #backoffs: Cache<string, Backoff>;
  /** Until when events of slow servers wait, in milliseconds since the epoch. */
  readonly #slow: Cache<string, number>;

  constructor(clock: Clock, caches: CacheRegistry) {
    this.#clock = clock;
    // The size is fixed, because the backoffs protect other servers from requests.
    this.#backoffs = caches.create('query_backoffs', { size: maxRemembered, fixed: true });
    this.#slow = caches.create('slow_servers_of_rooms', {
      size: maxRemembered,
      fixed: true,
      isExpired: (until) => until <= clock.now(),
    });
  }

  /**
   * Returns when the backoff of the server for this room ends, in milliseconds since the epoch; undefined
   * without a backoff.
   */
  backoffEnd(roomId: string, server: string): number | undefined {
    return this.#ifInFuture(this.#backoffs.get(keyOf(roomId, server))?.until);
  }

  /**
   * Returns until when the server's events that need requests have to wait, in milliseconds since the epoch; undefined
   * when they need not wait.
   */
  eventsWaitUntil(roomId: string, server: string): number | undefined {
    const slowUntil = this.#slow.get(keyOf(roomId, server)) ?? 0;
    return this.#ifInFuture(Math.max(slowUntil, this.backoffEnd(roomId, server) ?? 0));
  }

  /** Starts a backoff of the server for this room, or doubles its length. */
  recordFailure(roomId: string, server: string): void {
    const lastLength = this.#backoffs.get(keyOf(roomId, server))?.length ?? 0;
    const length = Math.min(Math.max(firstBackoff, 2 * lastLength), longestBackoff);
    this.#backoffs.set(keyOf(roomId, server), { until: this.#clock.now() + length, length });
  }

  /**
   * Ends the current backoff, because the server has sent a new event; its next failure still lengthens the backoff.
   */
  endForNow(roomId: string, server: string): void {
    const backoff = this.#backoffs.get(keyOf(roomId, server));
    if (backoff) this.#backoffs.set(keyOf(roomId, server), { ...backoff, until: 0 });
  }

  /** Ends the backoff; the next failure starts with the first length again. */
  recordSuccess(roomId: string, server: string): void {
    this.#backoffs.delete(keyOf(roomId, server));
  }

  /** Records how long processing an event of the server took. @param took milliseconds, with all requests */
  recordDuration(roomId: string, server: string, took: number): void {
    if (took >= slowProcessing) this.#slow.set(keyOf(roomId, server), this.#clock.now() + took);
  }

  #ifInFuture(until: number | undefined): number | undefined {
    return until !== undefined && until > this.#clock.now() ? until : undefined;
  }
}

/** Room ids and server names contain no spaces. */
const keyOf = (roomId: string, server: string) => `${roomId} ${server}`;
