import { type Clock, sleep } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { Placement, RoomHead, StoredEvent } from '../../room-engine/index.ts';
import type { AuthEventFetcher } from '../fetching/auth-event-fetcher.ts';
import type { EventFetcher } from '../fetching/event-fetcher.ts';
import type { StateFetcher } from '../fetching/state-fetcher.ts';
import type { ServerQueries } from '../querying/server-queries.ts';
import { requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents } from '../remote-servers.ts';

/** A search for the event closest to a timestamp. */
export interface TimestampQuery {
  /** Milliseconds since the epoch. */
  readonly ts: number;
  readonly direction: 'forward' | 'backward';
  /** The timestamp of the closest event that is stored on this server; undefined when there is none. */
  readonly closestKnownTs: number | undefined;
}

/** Maximum milliseconds for which a client waits. */
const clientTimeout = 10_000;

interface Deps {
  readonly placement: Placement;
  readonly remote: RemoteEvents;
  readonly fetcher: EventFetcher;
  readonly auth: AuthEventFetcher;
  readonly states: StateFetcher;
  readonly queries: ServerQueries;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Finds events by timestamp on remote servers. */
export class TimestampToEvent {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /**
   * Finds an event on remote servers that is closer to the timestamp than the stored events, and places it; `undefined`
   * when no server returns such an event within ten seconds.
   * Source: server-server API, `GET /timestamp_to_event/{roomId}`.
   */
  async find(head: RoomHead, wanted: TimestampQuery): Promise<StoredEvent | undefined> {
    const { queries, clock, log } = this.#deps;
    const waiting = new AbortController();
    const late = sleep(clock, clientTimeout, waiting.signal).then(() => undefined);
    const search = queries
      .run(head, [], (query) => this.#request(query, wanted))
      .catch((error: unknown) => {
        log.info(
          { err: error, roomId: head.roomId },
          'Searching remote servers for an event by timestamp failed',
        );
        return undefined;
      });
    try {
      return await Promise.race([search, late]);
    } finally {
      waiting.abort();
    }
  }

  async #request(
    query: ServerQuery,
    { ts, direction, closestKnownTs }: TimestampQuery,
  ): Promise<StoredEvent | undefined> {
    const { roomId, signal } = query;
    const result = await query.request<{ stored?: StoredEvent }>('timestamp_to_event', async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const answer = await this.#deps.remote.timestampToEvent(server, roomId, ts, direction, request);
      const distance = direction === 'forward' ? answer.originServerTs - ts : ts - answer.originServerTs;
      if (distance < 0 || (closestKnownTs !== undefined && distance >= Math.abs(closestKnownTs - ts)))
        return {};
      const stored = await this.#place(query, answer.eventId);
      // The timestamp in the event must match the timestamp that the server claims.
      return stored?.event.originServerTs === answer.originServerTs ? { stored } : undefined;
    });
    return result?.stored;
  }

  async #place(query: ServerQuery, eventId: string): Promise<StoredEvent | undefined> {
    const { placement, fetcher, auth, states } = this.#deps;
    const known = (await placement.find([eventId])).get(eventId);
    if (known?.stream !== undefined) return known.roomNid === query.roomNid ? known : undefined;
    const event = (await fetcher.fetch(query, [eventId])).get(eventId);
    if (!event) return undefined;
    const { prevEventIds } = event.event;
    const prev = await placement.find(prevEventIds);
    const missing = prevEventIds.filter((id) => prev.get(id)?.stateGroup === undefined);
    const state = missing.length > 0 ? await states.stateBefore(query, eventId, missing) : {};
    await auth.fetchMissing(query, event.event);
    await placement.backfill(query.roomId, [{ event, ...state, detached: true }]);
    return (await placement.find([eventId])).get(eventId);
  }
}
