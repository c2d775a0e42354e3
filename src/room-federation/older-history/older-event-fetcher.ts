import type { Logger } from '../../kernel/observability/index.ts';
import {
  type HeadReader,
  isExpired,
  type OlderEvent,
  type Placement,
  type RoomHead,
  type VerifiedEvent,
} from '../../room-engine/index.ts';
import { hasState } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import type { AuthEventFetcher } from '../fetching/auth-event-fetcher.ts';
import type { StateFetcher } from '../fetching/state-fetcher.ts';
import { requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents } from '../remote-servers.ts';

export interface OlderEventFetcherDeps {
  readonly heads: HeadReader;
  readonly placement: Placement;
  readonly remote: RemoteEvents;
  readonly responses: ResponseVerifier;
  readonly auth: AuthEventFetcher;
  readonly states: StateFetcher;
  /**
   * Returns a time in milliseconds since the epoch: older messages of the room have expired. Absent when messages never
   * expire.
   */
  readonly expiredBefore?: ((head: RoomHead) => number | Promise<number>) | undefined;
  readonly log: Logger;
}

/** Maximum numbers of events for one response. */
export interface ResponseLimits {
  readonly events: number;
  /** Maximum number of events that are placed with a fetched state. */
  readonly states: number;
}

/** Backfills missing events of the timeline and some events before them. */
export class OlderEventFetcher {
  readonly #deps: OlderEventFetcherDeps;

  constructor(deps: OlderEventFetcherDeps) {
    this.#deps = deps;
  }

  /**
   * Sends `GET /backfill/{roomId}` to one server after another. Drops messages that have expired by the retention
   * policy of the room, and does not request them from other servers.
   * @returns whether an event of `eventIds` was placed
   */
  async fetch(query: ServerQuery, eventIds: readonly string[], limits: ResponseLimits): Promise<boolean> {
    const { remote, responses } = this.#deps;
    const { roomId, signal } = query;
    const wanted = await this.#unplaced(eventIds);
    if (wanted.length === 0) return false;
    const expiredBefore = await this.#expiredBefore(roomId);
    const placed = await query.request('backfill', async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const jsons = await remote.backfill(server, roomId, wanted, limits.events, request);
      const received = await responses.verifyWanted(query, server, jsons, () => true, 'unlimited');
      const unexpired = new Map([...received].filter(([, verified]) => !isExpired(verified, expiredBefore)));
      const unplacedIds = new Set(await this.#unplaced([...unexpired.keys()]));
      const chain = connectedTo(wanted, new Map([...unexpired].filter(([id]) => unplacedIds.has(id))));
      await this.#place(query, chain, limits.states);
      if ((await this.#unplaced(wanted)).length < wanted.length) return true;
      return wanted.some((id) => received.has(id) && !unexpired.has(id)) ? false : undefined;
    });
    return placed === true;
  }

  async #expiredBefore(roomId: string): Promise<number> {
    const { heads, expiredBefore } = this.#deps;
    const head = expiredBefore && (await heads.get(roomId));
    return head ? expiredBefore(head) : Number.NEGATIVE_INFINITY;
  }

  /** Returns the ids of events that are not placed yet. */
  async #unplaced(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.find(eventIds);
    return eventIds.filter((id) => {
      const stored = known.get(id);
      return stored === undefined || !hasState(stored);
    });
  }

  /** Places events before the timeline, oldest first; leaves out events that cannot be placed. */
  async #place(
    query: ServerQuery,
    chain: ReadonlyMap<string, VerifiedEvent>,
    maxStates: number,
  ): Promise<void> {
    const older: OlderEvent[] = [];
    const placing = new Set<string>();
    let statesLeft = maxStates;
    for (const verified of [...chain.values()].sort((a, b) => a.event.depth - b.event.depth)) {
      try {
        const prev = verified.event.prevEventIds;
        const missing = (await this.#withoutState(prev)).filter((id) => !placing.has(id));
        if (missing.length > 0 && statesLeft-- <= 0) continue;
        const state =
          missing.length > 0
            ? await this.#deps.states.stateBefore(query, verified.event.eventId, missing)
            : {};
        await this.#deps.auth.fetchMissing(query, verified.event, placing);
        older.push({ event: verified, ...state });
        placing.add(verified.event.eventId);
      } catch (error) {
        const { eventId } = verified.event;
        this.#deps.log.info({ err: error, eventId }, 'An older event could not be placed');
      }
    }
    if (older.length > 0) await this.#deps.placement.backfill(query.roomId, older);
  }

  async #withoutState(eventIds: readonly string[]): Promise<string[]> {
    const known = await this.#deps.placement.find(eventIds);
    return eventIds.filter((id) => known.get(id)?.stateGroup === undefined);
  }
}

/** The part of a response that is connected to the requested events; a server may send unrelated events. */
function connectedTo(
  eventIds: readonly string[],
  events: ReadonlyMap<string, VerifiedEvent>,
): Map<string, VerifiedEvent> {
  const chain = new Map<string, VerifiedEvent>();
  const wanted = [...eventIds];
  for (const id of wanted) {
    const verified = chain.has(id) ? undefined : events.get(id);
    if (!verified) continue;
    chain.set(id, verified);
    wanted.push(...verified.event.prevEventIds);
  }
  return chain;
}
