import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/**
 * Events in the cache, and milliseconds for which an event is not requested again: after a failed check, and
 * while a key could not be fetched.
 */
const [maxEvents, retryAfter, retryAfterKeyFailure] = [20_000, 60 * 60_000, 5_000];

/**
 * Events that failed the checks, by the server that sent them, so that the server is not asked for them
 * again. Another server may have the same event with valid signatures.
 */
export class InvalidEvents {
  readonly #clock: Clock;
  readonly #until: Cache<string, number>;

  constructor(clock: Clock, caches: CacheRegistry) {
    this.#clock = clock;
    this.#until = caches.create('invalid_events', {
      size: maxEvents,
      isExpired: (until) => until <= clock.now(),
    });
  }

  has(server: string, eventId: string): boolean {
    return this.#until.has(keyOf(server, eventId));
  }

  /** @param isTemporary whether a key that could not be fetched is the only problem */
  add(server: string, eventId: string, isTemporary: boolean): void {
    this.#until.set(
      keyOf(server, eventId),
      this.#clock.now() + (isTemporary ? retryAfterKeyFailure : retryAfter),
    );
  }
}

/** Server names contain no spaces. */
const keyOf = (server: string, eventId: string) => `${server} ${eventId}`;
