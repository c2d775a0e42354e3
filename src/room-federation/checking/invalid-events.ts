import type { Cache, CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';

/** Maximum number of events in the cache. */
const maxEvents = 20_000;

/** Milliseconds for which an event stays in the cache. */
const rememberedFor = 60 * 60_000;

/** When a missing key is the only problem of an event, the event is not requested again for this many milliseconds. */
const keyRetryDelay = 5_000;

interface InvalidEvent {
  /** Milliseconds since the epoch. */
  readonly checkedAt: number;
  /** Whether the only problem is a key that may still be fetched. */
  readonly awaitsKey: boolean;
}

/**
 * Events that failed the checks, by the server that sent them, so that they are not requested from it again. Another
 * server may have the same event with valid signatures.
 */
export class InvalidEvents {
  readonly #clock: Clock;
  readonly #events: Cache<string, InvalidEvent>;

  constructor(clock: Clock, caches: CacheRegistry) {
    this.#clock = clock;
    this.#events = caches.create('invalid_events', {
      size: maxEvents,
      isExpired: ({ checkedAt }) => checkedAt + rememberedFor <= clock.now(),
    });
  }

  /** Whether the event is not to be requested from the server now. */
  mustNotRequest(server: string, eventId: string): boolean {
    const event = this.#events.get(keyOf(server, eventId));
    if (!event) return false;
    return !event.awaitsKey || this.#clock.now() < event.checkedAt + keyRetryDelay;
  }

  /** Whether the event could not be verified when the server sent it last, because a key could not be fetched yet. */
  awaitsKey(server: string, eventId: string): boolean {
    return this.#events.get(keyOf(server, eventId))?.awaitsKey === true;
  }

  /** @param awaitsKey whether the only problem is a key that may still be fetched */
  add(server: string, eventId: string, awaitsKey: boolean): void {
    this.#events.set(keyOf(server, eventId), { checkedAt: this.#clock.now(), awaitsKey });
  }
}

/** Server names contain no spaces. */
const keyOf = (server: string, eventId: string) => `${server} ${eventId}`;
