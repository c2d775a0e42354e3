import { RecentlyUsed } from '../../kernel/caches/index.ts';
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
  readonly #until = new RecentlyUsed<string, number>({ max: maxEvents });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(server: string, eventId: string): boolean {
    return (this.#until.get(keyOf(server, eventId)) ?? 0) > this.#clock.now();
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
