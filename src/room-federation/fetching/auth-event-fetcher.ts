import type { RoomEvent } from '../../protocol/index.ts';
import type { Placement, VerifiedEvent } from '../../room-engine/index.ts';
import type { KnownEvents } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import { FetchFailed, requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents } from '../remote-servers.ts';
import { sortByAuthEvents } from './auth-order.ts';
import type { EventFetcher } from './event-fetcher.ts';

/** Maximum number of events in a response to `GET /event_auth`. Longer responses are ignored. */
const maxChainLength = 10_000;

/** If an event lacks more auth events than this, the whole chain is requested before any are fetched one by one. */
const maxSinglesFirst = 20;

/** Maximum number of events that one call of `#fetchSingly` fetches, the missing auth events of fetched events included. */
const maxSingles = 100;

/** Maximum number of levels of the auth chain whose events are fetched one by one. */
const maxLevels = 20;

/** Fetches and stores missing auth events. */
export class AuthEventFetcher {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly placement: Placement;
  };

  constructor(deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly fetcher: EventFetcher;
    readonly known: KnownEvents;
    readonly placement: Placement;
  }) {
    this.#deps = deps;
  }

  /**
   * Fetches the missing events of an event's auth chain in up to three steps. Fetches them one by one if at most
   * `maxSinglesFirst` auth events are missing, because usually only one membership event is missing. Then requests the
   * whole chain with `GET /event_auth`, and last fetches one by one what is still missing.
   * @param aboutToBeStored ids of events that the caller will store: they do not count as missing
   * @throws FetchFailed when an auth event is still missing
   */
  async fetchMissing(
    query: ServerQuery,
    { eventId, authEventIds }: RoomEvent,
    aboutToBeStored: ReadonlySet<string> = new Set(),
  ): Promise<void> {
    const needed = authEventIds.filter((id) => !aboutToBeStored.has(id));
    let missing = await this.notStored(needed);
    if (missing.length > 0 && missing.length <= maxSinglesFirst) {
      await this.#fetchSingly(query, missing);
      missing = await this.notStored(needed);
    }
    if (missing.length === 0) return;
    await this.#fetchChain(query, eventId, needed);
    missing = await this.notStored(needed);
    if (missing.length > 0) {
      await this.#fetchSingly(query, missing);
      missing = await this.notStored(needed);
    }
    if (missing.length > 0)
      throw new FetchFailed(`${missing.length} auth events of ${eventId} could not be fetched`);
  }

  /** Returns those of these ids whose events are not stored. */
  async notStored(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.find(eventIds);
    return eventIds.filter((id) => !known.has(id));
  }

  /** Stores events as outliers. Leaves out events with an auth event that is neither stored nor one of `events`. */
  async store({ roomId, version }: ServerQuery, events: ReadonlyMap<string, VerifiedEvent>): Promise<void> {
    const { known, placement } = this.#deps;
    const authEventIds = [...events.values()].flatMap(({ event }) => event.authEventIds);
    const stored = await known.find([...events.keys(), ...authEventIds]);
    const newEvents = new Map([...events].filter(([id]) => !stored.has(id)));
    const ordered = sortByAuthEvents(newEvents, (id) => stored.has(id));
    if (ordered.length > 0) await placement.addOutliers({ roomId, version }, ordered);
  }

  async #fetchChain(query: ServerQuery, eventId: string, needed: readonly string[]): Promise<void> {
    const { remote, responses } = this.#deps;
    const { roomId, signal } = query;
    await query.request(`event_auth ${eventId}`, async (server) => {
      const request = { signal, timeout: requestTimeout.long };
      const jsons = await remote.eventAuth(server, roomId, eventId, request);
      if (jsons.length > maxChainLength) return undefined;
      await this.store(query, await responses.verifyNewState(query, server, jsons));
      return (await this.notStored(needed)).length === 0 || undefined;
    });
  }

  /** Fetches auth events one by one, level by level, and stores them. */
  async #fetchSingly(query: ServerQuery, eventIds: readonly string[]): Promise<void> {
    const events = new Map<string, VerifiedEvent>();
    let wanted = [...eventIds];
    for (let level = 0; level < maxLevels && wanted.length > 0 && events.size < maxSingles; level++) {
      const fetched = await this.#deps.fetcher.fetch(query, wanted.slice(0, maxSingles - events.size));
      for (const [id, event] of fetched) events.set(id, event);
      const authEventIds = [...fetched.values()].flatMap(({ event }) => event.authEventIds);
      wanted = (await this.notStored([...new Set(authEventIds)])).filter((id) => !events.has(id));
    }
    await this.store(query, events);
  }
}
