import type { VerifiedEvent } from '../../room-engine/index.ts';
import { FetchFailed, requestTimeout, type ServerQuery } from '../asking/server-query.ts';
import type { KnownEvents } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import type { RemoteEvents, RemoteState } from '../remote-servers.ts';
import type { AuthEventFetcher } from './auth-event-fetcher.ts';
import type { EventFetcher } from './event-fetcher.ts';

/** Missing events that are always fetched one by one, and the maximum that ever are. */
const [alwaysSingles, maxSingles] = [20, 500];

/** If more than one in so many events of a state is missing, the whole state is fetched. */
const maxMissingDivisor = 10;

/** The default share of a state that may be missing. */
export const defaultMaxMissing = 0.1;

/** How a state is fetched. */
export interface StateOptions {
  /**
   * The share of a state, from 0 to 1, that may be missing in addition to events that this server has
   * rejected. Callers that retry start with less than the default, since keys may become available; the last
   * attempts accept more.
   */
  readonly maxMissing?: number;
  /** Whether servers in backoff for this room are asked, too. */
  readonly ignoreBackoff?: boolean;
}

/** Fetches the state before an event. */
export class StateFetcher {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
  };

  constructor(deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
  }) {
    this.#deps = deps;
  }

  /**
   * Fetches the state before an event and stores all of its events. The response cannot be checked for
   * completeness, only each event can. Leaves out events that this server has rejected, and events that no
   * server provides, up to the share `maxMissing`.
   * @returns event ids
   * @throws FetchFailed when no server provides enough of the state
   */
  async stateBefore(
    query: ServerQuery,
    eventId: string,
    { maxMissing = defaultMaxMissing }: StateOptions = {},
  ): Promise<string[]> {
    const state = await query.ask('state_ids', async (server) => {
      const request = { signal: query.signal, timeout: requestTimeout.long };
      const ids = await this.#deps.remote.stateIds(server, query.roomId, eventId, request);
      await this.#storeMissing(query, server, eventId, ids);
      return this.#usable(query, ids.state, maxMissing);
    });
    if (state === undefined) throw new FetchFailed(`the state before ${eventId} could not be fetched`);
    return state;
  }

  /** Fetches and stores the missing events of a state and its auth chain. */
  async #storeMissing(
    query: ServerQuery,
    server: string,
    eventId: string,
    { state, authChain }: RemoteState<string>,
  ): Promise<void> {
    const ids = new Set([...state, ...authChain]);
    const known = await this.#deps.known.find(ids);
    const missing = [...ids].filter((id) => !known.has(id));
    if (missing.length === 0) return;
    const events = shouldFetchFullState(missing.length, ids.size)
      ? await this.#fetchFullState(query, server, eventId, new Set(missing))
      : await this.#deps.fetcher.fetch(query, missing);
    await this.#deps.auth.store(query, events);
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

  /** Returns the usable event ids of a state; undefined when too many are missing. */
  async #usable(
    { roomNid }: ServerQuery,
    state: readonly string[],
    maxMissing: number,
  ): Promise<string[] | undefined> {
    const ids = [...new Set(state)];
    const known = await this.#deps.known.find(ids);
    const usable = ids.filter((id) => {
      const event = known.get(id);
      return event?.roomNid === roomNid && !event.rejected;
    });
    const missing = ids.filter((id) => !known.has(id)).length;
    return usable.length > 0 && missing <= ids.length * maxMissing ? usable : undefined;
  }
}

/** Remote servers limit the rate of requests, so that fetching hundreds of single events takes minutes. */
const shouldFetchFullState = (missing: number, all: number): boolean =>
  missing > maxSingles || (missing > alwaysSingles && missing * maxMissingDivisor > all);
