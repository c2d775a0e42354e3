import type { Logger } from '../kernel/observability/index.ts';
import type { Placement, StoredEvent, VerifiedEvent } from '../room-engine/index.ts';
import { MissingEvents } from '../room-engine/index.ts';
import { FetchFailed, type ServerQuery } from './asking/server-query.ts';
import type { AuthEventFetcher } from './fetching/auth-event-fetcher.ts';
import type { EventFetcher } from './fetching/event-fetcher.ts';
import type { GapFiller } from './fetching/gap-filler.ts';
import type { StateFetcher, StateOptions } from './fetching/state-fetcher.ts';
import { asVerified, hasState } from './settled.ts';
import type { Staging } from './staging/staging.ts';

/** Earlier events that may fail before the others are not tried any more. */
const maxFailures = 3;

/** Previous events of one event whose state is fetched; if more are missing, only the state before the event itself is. */
const maxTips = 5;

interface Deps {
  readonly placement: Placement;
  readonly staging: Staging;
  readonly gaps: GapFiller;
  readonly auth: AuthEventFetcher;
  readonly states: StateFetcher;
  readonly fetcher: EventFetcher;
  readonly log: Logger;
  /** Told of every event that gets its place. */
  readonly onPlaced: (stored: StoredEvent) => void;
}

/** Gives events their places, with everything that they refer to. */
export class EventProcessor {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Whether the event can have its place without asking anybody.
   * @param isUnderWay whether an event is getting its place now, before this one
   */
  async isComplete(
    { event }: VerifiedEvent,
    isUnderWay: (eventId: string) => boolean = () => false,
  ): Promise<boolean> {
    const known = await this.#deps.placement.find([...event.prevEventIds, ...event.authEventIds]);
    const isPlaced = (id: string) => {
      const stored = known.get(id);
      return isUnderWay(id) || (stored !== undefined && hasState(stored));
    };
    return (
      event.prevEventIds.every(isPlaced) && event.authEventIds.every((id) => isUnderWay(id) || known.has(id))
    );
  }

  /** What an event refers to and has no place here, or is not here. */
  async missingReferences({ event }: VerifiedEvent): Promise<string[]> {
    const { prevEventIds, authEventIds } = event;
    const known = await this.#deps.placement.find([...prevEventIds, ...authEventIds]);
    const isPlaced = (id: string) => {
      const stored = known.get(id);
      return stored !== undefined && hasState(stored);
    };
    return [...prevEventIds.filter((id) => !isPlaced(id)), ...authEventIds.filter((id) => !known.has(id))];
  }

  /** Gives a complete event its place. @throws as `Placement.append` does */
  async place(roomId: string, one: VerifiedEvent): Promise<StoredEvent> {
    const stored = await this.#deps.placement.place(roomId, one);
    this.#deps.onPlaced(stored);
    return stored;
  }

  /**
   * Gives an event its place, after those that come before it and are missing.
   * @throws Unobtainable, MatrixError of `Placement.append`
   */
  async process(query: ServerQuery, one: VerifiedEvent, options?: StateOptions): Promise<StoredEvent> {
    const { placement, staging, gaps, log } = this.#deps;
    const { eventId } = one.event;
    const known = (await placement.find([eventId])).get(eventId);
    if (known && hasState(known)) {
      staging.remove(eventId);
      return known;
    }
    let failures = 0;
    for (const earlier of await gaps.fetchGap(query, one.event)) {
      try {
        await this.#place(query, earlier, options);
      } catch (error) {
        const failed = earlier.event.eventId;
        log.info({ err: error, eventId: failed }, 'An event of a gap has no place');
        if (query.signal.aborted || ++failures === maxFailures) break;
      }
    }
    return this.#place(query, one, options);
  }

  async #place(query: ServerQuery, one: VerifiedEvent, options?: StateOptions): Promise<StoredEvent> {
    const { auth, states } = this.#deps;
    const { eventId, prevEventIds } = one.event;
    await auth.fetchMissing(query, one.event);
    const prev = [...new Set(prevEventIds)];
    let missing = await this.#withoutState(prev);
    if (missing.length > 0 && missing.length < prev.length && missing.length <= maxTips) {
      await this.#placeTips(query, missing, options);
      missing = await this.#withoutState(prev);
    }
    if (missing.length === 0) return this.#append(query, one);
    try {
      return await this.#append(query, one, await states.stateBefore(query, eventId, options));
    } catch (error) {
      if (!(error instanceof FetchFailed) || missing.length > maxTips) throw error;
      // Not every server tells the state before an event that it has sent just now.
      await this.#placeTips(query, missing, options);
      if ((await this.#withoutState(prev)).length > 0) throw error;
      return this.#append(query, one);
    }
  }

  /**
   * Where some of what comes before an event is known, each of the others gets a place with the state before it, so
   * that the states are resolved here, and no server alone says what the state is.
   */
  async #placeTips(query: ServerQuery, eventIds: readonly string[], options?: StateOptions): Promise<void> {
    const { placement, fetcher, auth, states, log } = this.#deps;
    const tips = new Map<string, VerifiedEvent>();
    for (const [id, stored] of await placement.find(eventIds)) {
      if (stored.roomNid === query.roomNid) tips.set(id, asVerified(stored));
    }
    const unknown = eventIds.filter((id) => !tips.has(id));
    for (const [id, tip] of await fetcher.fetch(query, unknown)) tips.set(id, tip);
    for (const [id, tip] of tips) {
      try {
        await auth.fetchMissing(query, tip.event);
        await this.#append(query, tip, await states.stateBefore(query, id, options));
      } catch (error) {
        log.info({ err: error, eventId: id }, 'An event that a later one refers to has no place');
      }
    }
  }

  async #withoutState(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.find(eventIds);
    return eventIds.filter((id) => known.get(id)?.stateGroup === undefined);
  }

  async #append(
    { roomId }: ServerQuery,
    one: VerifiedEvent,
    stateBefore?: readonly string[],
  ): Promise<StoredEvent> {
    const { placement, staging, onPlaced } = this.#deps;
    try {
      const stored = await placement.place(roomId, one, { ...(stateBefore && { stateBefore }) });
      onPlaced(stored);
      staging.remove(one.event.eventId);
      return stored;
    } catch (error) {
      if (error instanceof MissingEvents) throw new FetchFailed(error.message, { cause: error });
      throw error;
    }
  }
}
