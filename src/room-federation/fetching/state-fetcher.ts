import type { VerifiedEvent } from '../../room-engine/index.ts';
import { FetchFailed, requestTimeout, type ServerQuery } from '../asking/server-query.ts';
import type { KnownEvents } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import type { RemoteEvents, RemoteState } from '../remote-servers.ts';
import type { AuthEventFetcher } from './auth-event-fetcher.ts';
import type { EventFetcher } from './event-fetcher.ts';

/** Events of a state and its auth chain that are fetched one by one, however large it is, and at most. */
const [alwaysSingles, maxSingles] = [20, 500];

/** If a larger part of a state is missing than one of so many events, it is fetched whole. */
const largestPart = 10;

/** The part of a state that may be missing when nothing else is said. */
export const defaultMaxMissing = 0.1;

/** How a state is fetched. */
export interface StateOptions {
  /**
   * The part of a state, from 0 to 1, that may be left out beside what this server has rejected. Less than usual for
   * callers who try again later, when keys may be had that are missing now; more where it is that or nothing.
   */
  readonly maxMissing?: number;
  /** Asks servers also that have not helped with the room lately. */
  readonly ignoreBackoff?: boolean;
}

/** Fetches the state before an event from the servers of its room. */
export class StateFetcher {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
  };

  constructor(parts: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly auth: AuthEventFetcher;
  }) {
    this.#deps = parts;
  }

  /**
   * The state before an event, all of which is stored when this resolves. Whoever answers can not be checked for
   * completeness: what can be checked is each event. State events that no server gives are left out, unless they are
   * many; what this server has rejected is.
   * @returns event ids
   * @throws Unobtainable
   */
  async stateBefore(
    query: ServerQuery,
    eventId: string,
    { maxMissing: mayLack = defaultMaxMissing }: StateOptions = {},
  ): Promise<string[]> {
    const state = await query.ask('state_ids', async (server) => {
      const request = { signal: query.signal, timeout: requestTimeout.long };
      const ids = await this.#deps.remote.stateIds(server, query.roomId, eventId, request);
      await this.#obtain(query, server, eventId, ids);
      return this.#usable(query, ids.state, mayLack);
    });
    if (state === undefined) throw new FetchFailed(`the state before ${eventId} can not be had`);
    return state;
  }

  /** Stores what is not here of a state. */
  async #obtain(
    query: ServerQuery,
    server: string,
    eventId: string,
    { state, authChain }: RemoteState<string>,
  ): Promise<void> {
    const ids = new Set([...state, ...authChain]);
    const known = await this.#deps.known.find(ids);
    const missing = [...ids].filter((id) => !known.has(id));
    if (missing.length === 0) return;
    const events = isWholeBetter(missing.length, ids.size)
      ? await this.#fetchWhole(query, server, eventId, new Set(missing))
      : await this.#deps.fetcher.fetch(query, missing);
    await this.#deps.auth.store(query, events);
  }

  async #fetchWhole(
    query: ServerQuery,
    server: string,
    eventId: string,
    missing: ReadonlySet<string>,
  ): Promise<Map<string, VerifiedEvent>> {
    const request = { signal: query.signal, timeout: requestTimeout.long };
    const whole = await this.#deps.remote.state(server, query.roomId, eventId, request);
    const jsons = [...whole.state, ...whole.authChain];
    return this.#deps.responses.verifyWanted(query, server, jsons, (event) => missing.has(event.eventId));
  }

  /** The part of a state that counts; `undefined` when that is not enough. */
  async #usable(
    { roomNid }: ServerQuery,
    state: readonly string[],
    mayLack: number,
  ): Promise<string[] | undefined> {
    const ids = [...new Set(state)];
    const known = await this.#deps.known.find(ids);
    const usable = ids.filter((id) => {
      const event = known.get(id);
      return event?.roomNid === roomNid && !event.rejected;
    });
    const lost = ids.filter((id) => !known.has(id)).length;
    return usable.length > 0 && lost <= ids.length * mayLack ? usable : undefined;
  }
}

/** Servers limit how many requests they take from one other, so that hundreds of single events take minutes. */
const isWholeBetter = (missing: number, all: number): boolean =>
  missing > maxSingles || (missing > alwaysSingles && missing * largestPart > all);
