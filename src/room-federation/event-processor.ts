import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { serverOfUser } from '../protocol/index.ts';
import {
  MissingEvents,
  type Placement,
  type PlaceOptions,
  type RoomHead,
  type StoredEvent,
  type SuppliedState,
  type VerifiedEvent,
} from '../room-engine/index.ts';
import { asVerified, hasState } from './checking/known-events.ts';
import type { AuthEventFetcher } from './fetching/auth-event-fetcher.ts';
import type { EventFetcher } from './fetching/event-fetcher.ts';
import type { GapFiller } from './fetching/gap-filler.ts';
import type { StateFetcher, StateOptions } from './fetching/state-fetcher.ts';
import type { IncomingMetrics } from './metrics.ts';
import type { MissedHistory } from './older-history/missed-history.ts';
import type { QueryBackoff } from './querying/query-backoff.ts';
import type { ServerQueries } from './querying/server-queries.ts';
import { FetchFailed, type ServerQuery } from './querying/server-query.ts';
import type { Staging } from './staging/staging.ts';

/** After this number of events of a gap has failed to be placed, the remaining events of the gap are not tried. */
const maxFailures = 3;

/**
 * If some previous events of an event are known and at most this number are missing, the missing ones are placed with
 * fetched states.
 */
const maxEventsWithFetchedState = 5;

interface Deps {
  readonly serverName: string;
  readonly placement: Placement;
  readonly staging: Staging;
  readonly queries: ServerQueries;
  readonly gaps: GapFiller;
  readonly auth: AuthEventFetcher;
  readonly states: StateFetcher;
  readonly fetcher: EventFetcher;
  readonly missed: MissedHistory;
  readonly backoff: QueryBackoff;
  readonly metrics: IncomingMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Places verified events in their rooms, and fetches the missing events and states before them. */
export class EventProcessor {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Whether the event can be placed without requests to remote servers.
   * @param isUnderWay whether an event is being placed at the moment, and so counts as placed
   */
  async isComplete(
    { event }: VerifiedEvent,
    isUnderWay: (eventId: string) => boolean = () => false,
  ): Promise<boolean> {
    const known = await this.#deps.placement.find([...event.prevEventIds, ...event.authEventIds]);
    const isPlacedOrUnderWay = (id: string) => {
      const stored = known.get(id);
      return isUnderWay(id) || (stored !== undefined && hasState(stored));
    };
    return (
      event.prevEventIds.every(isPlacedOrUnderWay) &&
      event.authEventIds.every((id) => isUnderWay(id) || known.has(id))
    );
  }

  /** Returns the ids of the previous events that are not placed, and of the auth events that are not stored. */
  async missingReferences({ event }: VerifiedEvent): Promise<string[]> {
    const { prevEventIds, authEventIds } = event;
    const known = await this.#deps.placement.find([...prevEventIds, ...authEventIds]);
    const isPlaced = (id: string) => {
      const stored = known.get(id);
      return stored !== undefined && hasState(stored);
    };
    return [...prevEventIds.filter((id) => !isPlaced(id)), ...authEventIds.filter((id) => !known.has(id))];
  }

  /**
   * Places a complete event.
   * @throws the errors of `Placement.place`
   */
  async place(roomId: string, event: VerifiedEvent): Promise<StoredEvent> {
    const { placement, metrics, clock } = this.#deps;
    const startedAt = clock.monotonic();
    try {
      const stored = await placement.place(roomId, event, this.#options(event));
      this.#recordPlaced(stored);
      return stored;
    } finally {
      metrics.recordDuration(clock.monotonic() - startedAt);
    }
  }

  /**
   * Places an event, after fetching and placing the missing events before it.
   * @param origin the server that receives the requests first, before the server of the sender
   * @throws FetchFailed when an event or a state that it refers to is missing; the MatrixErrors of `Placement.place`
   */
  async process(
    head: RoomHead,
    origin: string,
    event: VerifiedEvent,
    options?: StateOptions,
  ): Promise<StoredEvent> {
    const { clock, queries, metrics, backoff, missed } = this.#deps;
    const startedAt = clock.monotonic();
    const first = [origin, serverOfUser(event.event.sender)];
    try {
      return await queries.run(head, first, (query) => this.#placeWithGap(head, query, event, options));
    } finally {
      const duration = clock.monotonic() - startedAt;
      metrics.recordDuration(duration);
      backoff.recordDuration(head.roomId, origin, duration);
      missed.check(head.roomId);
    }
  }

  async #placeWithGap(
    head: RoomHead,
    query: ServerQuery,
    event: VerifiedEvent,
    options?: StateOptions,
  ): Promise<StoredEvent> {
    const { placement, staging, gaps, log } = this.#deps;
    const { eventId } = event.event;
    const known = (await placement.find([eventId])).get(eventId);
    if (known && hasState(known)) {
      staging.remove(eventId);
      return known;
    }
    let failures = 0;
    const gap = await gaps.fetchGap(query, event.event);
    const expired = await placement.missingExpiredMessages(head, gap);
    for (const earlier of gap) {
      if (expired.has(earlier.event.eventId)) continue;
      try {
        await this.#placeWithReferences(query, earlier, options);
      } catch (error) {
        const failed = earlier.event.eventId;
        log.info({ err: error, eventId: failed }, 'An event of a gap could not be placed');
        if (query.signal.aborted || ++failures === maxFailures) break;
      }
    }
    return this.#placeWithReferences(query, event, options);
  }

  async #placeWithReferences(
    query: ServerQuery,
    event: VerifiedEvent,
    options?: StateOptions,
  ): Promise<StoredEvent> {
    const { auth, states } = this.#deps;
    const { eventId, prevEventIds } = event.event;
    const prev = [...new Set(prevEventIds)];
    let missing = await this.#withoutState(prev);
    if (missing.length > 0 && missing.length < prev.length && missing.length <= maxEventsWithFetchedState) {
      await this.#placeWithFetchedStates(query, missing, options);
      missing = await this.#withoutState(prev);
    }
    const state = missing.length === 0 ? {} : await states.stateBefore(query, eventId, missing, options);
    // The auth events are fetched after the state, because the response with the state contains most of them.
    await auth.fetchMissing(query, event.event);
    return this.#placeWithState(query, event, state);
  }

  /**
   * Places missing previous events, each with the fetched state before it. This server then resolves the states after
   * all previous events, so that no single remote server decides the state.
   */
  async #placeWithFetchedStates(
    query: ServerQuery,
    eventIds: readonly string[],
    options?: StateOptions,
  ): Promise<void> {
    const { placement, fetcher, auth, states, log } = this.#deps;
    const missingEvents = new Map<string, VerifiedEvent>();
    for (const [id, stored] of await placement.find(eventIds)) {
      if (stored.roomNid === query.roomNid) missingEvents.set(id, asVerified(stored));
    }
    const unknown = eventIds.filter((id) => !missingEvents.has(id));
    for (const [id, missing] of await fetcher.fetch(query, unknown)) missingEvents.set(id, missing);
    for (const [id, missing] of missingEvents) {
      try {
        const stateBefore = await states.stateAt(query, id, options);
        await auth.fetchMissing(query, missing.event);
        await this.#placeWithState(query, missing, { stateBefore });
      } catch (error) {
        log.info({ err: error, eventId: id }, 'A previous event of a received event could not be placed');
      }
    }
  }

  async #withoutState(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.find(eventIds);
    return eventIds.filter((id) => known.get(id)?.stateGroup === undefined);
  }

  async #placeWithState(
    { roomId }: ServerQuery,
    event: VerifiedEvent,
    state: SuppliedState = {},
  ): Promise<StoredEvent> {
    const { placement, staging } = this.#deps;
    try {
      const stored = await placement.place(roomId, event, { ...state, ...this.#options(event) });
      this.#recordPlaced(stored);
      staging.remove(event.event.eventId);
      return stored;
    } catch (error) {
      if (error instanceof MissingEvents) throw new FetchFailed(error.message, { cause: error });
      throw error;
    }
  }

  #options({ event }: VerifiedEvent): PlaceOptions {
    return { acceptedElsewhere: serverOfUser(event.sender) === this.#deps.serverName };
  }

  #recordPlaced(stored: StoredEvent): void {
    const { metrics, staging } = this.#deps;
    metrics.placed(stored);
    staging.markPlaced(stored.event.roomId, stored.event.eventId);
  }
}
