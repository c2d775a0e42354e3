import type { Placement, StateAfterEvent, SuppliedState, VerifiedEvent } from '../../room-engine/index.ts';
import type { InvalidEvents } from '../checking/invalid-events.ts';
import type { KnownEvents } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import { FetchFailed, requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents, RemoteState } from '../remote-servers.ts';
import type { AuthEventFetcher } from './auth-event-fetcher.ts';
import type { EventFetcher } from './event-fetcher.ts';

/** Up to this number of missing events, all are fetched one by one. */
const alwaysSingles = 20;

/** Above this number of missing events, none are fetched one by one. */
const maxSingles = 500;

/**
 * Between `alwaysSingles` and `maxSingles` missing events, the whole state is fetched with one request if more than
 * 1 / `maxMissingDivisor` of the events of the state and its auth chain are missing.
 */
const maxMissingDivisor = 10;

/** The default share of a state that may be missing. */
export const defaultMaxMissing = 0.1;

/** How a state is fetched. */
export interface StateOptions {
  /**
   * The share of a state, from 0 to 1, that may be missing. Callers that retry start with less than the default,
   * because keys may become available; their last attempts accept more.
   */
  readonly maxMissing?: number;
  /**
   * Is called when a state lacks events whose keys may still be fetched. Without this function, such a state is not
   * accepted.
   */
  readonly onMissingKeys?: (() => void) | undefined;
  /** Whether servers in backoff for this room receive requests, too. */
  readonly ignoreBackoff?: boolean;
  /**
   * Whether the state before an event is requested at the event itself when the states at its previous events
   * cannot be fetched. Set it to false where servers may not know the event.
   */
  readonly fallsBackToEvent?: boolean;
}

/** Maximum number of previous events whose states are fetched. */
const maxPrevStates = 20;

/** Fetches the states at events. */
export class StateFetcher {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly invalidEvents: InvalidEvents;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
    readonly placement: Placement;
  };

  constructor(deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly invalidEvents: InvalidEvents;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
    readonly placement: Placement;
  }) {
    this.#deps = deps;
  }

  /**
   * Fetches the state before an event whose previous events are missing: fetches the states at the missing previous
   * events, because a server that has sent the event knows these states, too. Only when that fails, fetches the state
   * at the event itself.
   * @param missing ids of its previous events whose states are not known
   * @throws FetchFailed
   */
  async stateBefore(
    query: ServerQuery,
    eventId: string,
    missing: readonly string[],
    options: StateOptions = {},
  ): Promise<SuppliedState> {
    const { fallsBackToEvent = true } = options;
    try {
      if (missing.length > maxPrevStates)
        throw new FetchFailed(`${eventId} has too many missing prev_events`);
      const statesAfterPrev: StateAfterEvent[] = [];
      for (const prevId of missing) statesAfterPrev.push(await this.#stateAfter(query, prevId, options));
      return { statesAfterPrev };
    } catch (error) {
      if (!(error instanceof FetchFailed) || !fallsBackToEvent) throw error;
      return { stateBefore: await this.stateAt(query, eventId, options) };
    }
  }

  /**
   * Fetches the state before an event, and the event itself. If `maxMissing` is above 0, succeeds even if no server
   * provides the event. While a key for the event may still be fetched, succeeds without it only if `onMissingKeys` is
   * given.
   * @throws FetchFailed
   */
  async #stateAfter(query: ServerQuery, eventId: string, options: StateOptions): Promise<StateAfterEvent> {
    const { placement, fetcher, auth } = this.#deps;
    const before = await this.stateAt(query, eventId, options);
    const hasEvent = async () => (await placement.find([eventId])).get(eventId)?.roomNid === query.roomNid;
    if (!(await hasEvent())) {
      const fetched = await fetcher.fetch(query, [eventId]);
      for (const { event } of fetched.values()) await auth.fetchMissing(query, event);
      await auth.store(query, fetched);
    }
    const maxMissing = options.maxMissing ?? defaultMaxMissing;
    if (!(await hasEvent())) {
      const awaitsKey = (await this.#awaitingKeys(query, [eventId])).size > 0;
      if (awaitsKey) options.onMissingKeys?.();
      if (awaitsKey ? !options.onMissingKeys : maxMissing === 0)
        throw new FetchFailed(`the event ${eventId} could not be fetched`);
    }
    return { eventId, before };
  }

  /**
   * Fetches the state before an event with a request for that event, and stores all events of the state. Each event of
   * the response can be checked, but not whether the response is complete. Leaves out events that no server provides,
   * or whose signatures are wrong, up to the share `maxMissing`. Events whose keys may still be fetched are left out in
   * any number if `onMissingKeys` is given. Otherwise the state fails: without these events, later events of the users
   * of their servers would be rejected for ever.
   * @returns event ids
   * @throws FetchFailed when no server provides enough of the state
   */
  async stateAt(
    query: ServerQuery,
    eventId: string,
    { maxMissing = defaultMaxMissing, onMissingKeys }: StateOptions = {},
  ): Promise<string[]> {
    const state = await query.request(`state_ids ${eventId}`, async (server) => {
      const request = { signal: query.signal, timeout: requestTimeout.long };
      const ids = await this.#deps.remote.stateIds(server, query.roomId, eventId, request);
      const missing = await this.#storeMissing(query, server, eventId, ids);
      const awaiting = await this.#awaitingKeys(query, missing);
      if (awaiting.size > 0 && !onMissingKeys) return undefined;
      const withKeys = ids.state.filter((id) => !awaiting.has(id));
      const usable = await this.#usableIds(query, withKeys, maxMissing);
      if (usable !== undefined && awaiting.size > 0) onMissingKeys?.();
      return usable;
    });
    if (state === undefined)
      throw new FetchFailed(`the state before ${eventId} could not be fetched`, { outcome: query.outcome });
    return state;
  }

  /**
   * Fetches and stores the missing events of a state and its auth chain.
   * @returns the ids of all that were missing, fetched or not
   */
  async #storeMissing(
    query: ServerQuery,
    server: string,
    eventId: string,
    { state, authChain }: RemoteState<string>,
  ): Promise<readonly string[]> {
    const ids = new Set([...state, ...authChain]);
    const known = await this.#deps.known.find(ids);
    const missing = [...ids].filter((id) => !known.has(id));
    if (missing.length === 0) return missing;
    const events = shouldFetchFullState(missing.length, ids.size)
      ? await this.#fetchFullState(query, server, eventId, new Set(missing))
      : await this.#deps.fetcher.fetch(query, missing);
    await this.#deps.auth.store(query, events);
    return missing;
  }

  async #fetchFullState(
    query: ServerQuery,
    server: string,
    eventId: string,
    missing: ReadonlySet<string>,
  ): Promise<Map<string, VerifiedEvent>> {
    const request = { signal: query.signal, timeout: requestTimeout.long };
    const full = await this.#deps.remote.state(server, query.roomId, eventId, request);
    const jsons = [...full.state, ...full.authChain];
    return this.#deps.responses.verifyWanted(query, server, jsons, (event) => missing.has(event.eventId));
  }

  /** Returns the events that are not stored because they could not be verified and a key may still be fetched. */
  async #awaitingKeys(query: ServerQuery, eventIds: readonly string[]): Promise<ReadonlySet<string>> {
    const { invalidEvents, known } = this.#deps;
    const servers = await query.servers();
    const unverified = eventIds.filter((id) => servers.some((server) => invalidEvents.awaitsKey(server, id)));
    if (unverified.length === 0) return new Set();
    const stored = await known.find(unverified);
    return new Set(unverified.filter((id) => !stored.has(id)));
  }

  /** Returns the usable event ids of a state; undefined when too many are missing. */
  async #usableIds(
    { roomNid }: ServerQuery,
    state: readonly string[],
    maxMissing: number,
  ): Promise<string[] | undefined> {
    const ids = [...new Set(state)];
    const known = await this.#deps.known.find(ids);
    const usable = ids.filter((id) => {
      const event = known.get(id);
      return event?.roomNid === roomNid;
    });
    const missing = ids.filter((id) => !known.has(id)).length;
    return usable.length > 0 && missing <= ids.length * maxMissing ? usable : undefined;
  }
}

/** Whether to fetch the whole state: servers limit the rate of requests, so hundreds of single events take minutes. */
const shouldFetchFullState = (missing: number, all: number): boolean =>
  missing > maxSingles || (missing > alwaysSingles && missing * maxMissingDivisor > all);
