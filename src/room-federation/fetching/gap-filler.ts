import type { RoomEvent } from '../../protocol/index.ts';
import type { HeadReader, Placement, VerifiedEvent } from '../../room-engine/index.ts';
import { requestTimeout, type ServerQuery } from '../asking/server-query.ts';
import { asVerified, hasState } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import type { RemoteEvents } from '../remote-servers.ts';
import type { Staging } from '../staging/staging.ts';

/** Maximum number of events per response. */
const maxPerResponse = 20;

/** Maximum number of events per gap. For a wider gap the state is fetched instead. */
const maxEvents = 200;

/** Maximum number of requests per gap. */
const maxRounds = 15;

/** Maximum number of event ids in `earliest_events` and in `latest_events` of a request. */
const maxIds = 20;

/** Finds the events between the known history of a room and a new event. */
export class GapFiller {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly placement: Placement;
    readonly heads: HeadReader;
    readonly staging: Staging;
  };

  constructor(deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly placement: Placement;
    readonly heads: HeadReader;
    readonly staging: Staging;
  }) {
    this.#deps = deps;
  }

  /**
   * Returns the missing events before an event, from the staged events, the stored outliers and remote
   * servers.
   * @returns in topological order, oldest first; their authorization is not checked yet
   */
  async fetchGap(query: ServerQuery, event: RoomEvent): Promise<VerifiedEvent[]> {
    const found = new Map<string, VerifiedEvent>();
    for (let round = 0; round < maxRounds && found.size < maxEvents; round++) {
      const missing = await this.#missing(event, found);
      if (missing.size === 0) break;
      if (await this.#addLocal(query, missing, found)) continue;
      if ((await this.#addFromServers(query, event, missing, found)) !== 'more') break;
    }
    return topologicalOrder(event, found);
  }

  /**
   * Previous events that are neither stored with their state nor found, each with the event that refers to
   * it.
   */
  async #missing(event: RoomEvent, found: ReadonlyMap<string, VerifiedEvent>): Promise<Map<string, string>> {
    const named = new Map<string, string>();
    for (const one of [event, ...[...found.values()].map(({ event }) => event)]) {
      for (const id of one.prevEventIds) {
        if (id !== event.eventId && !found.has(id) && !named.has(id)) named.set(id, one.eventId);
      }
    }
    for (const [id, stored] of await this.#deps.placement.find(named.keys())) {
      if (hasState(stored)) named.delete(id);
    }
    return named;
  }

  /** Adds missing events that are staged or stored as outliers. @returns whether any was added */
  async #addLocal(
    { version, roomId, roomNid }: ServerQuery,
    missing: ReadonlyMap<string, string>,
    found: Map<string, VerifiedEvent>,
  ): Promise<boolean> {
    const before = found.size;
    for (const [id, stored] of await this.#deps.placement.find(missing.keys())) {
      if (stored.roomNid === roomNid) found.set(id, asVerified(stored));
    }
    for (const id of missing.keys()) {
      const staged = this.#deps.staging.get(id);
      const read = staged?.roomId === roomId && (await this.#deps.staging.read(staged, version));
      if (read) found.set(id, read);
    }
    return found.size > before;
  }

  /**
   * Adds missing events with `POST /get_missing_events/{roomId}`. @returns 'more' when the response was cut off
   * at its limit. A shorter response has everything that the server is willing to return, so that it is not
   * asked about this gap again.
   */
  async #addFromServers(
    query: ServerQuery,
    event: RoomEvent,
    missing: ReadonlyMap<string, string>,
    found: Map<string, VerifiedEvent>,
  ): Promise<'more' | undefined> {
    const { remote, responses, heads } = this.#deps;
    const { roomId, signal } = query;
    const head = await heads.get(roomId);
    const earliest = (head?.extremities ?? []).slice(0, maxIds).map(({ eventId }) => eventId);
    const latest = [...new Set(missing.values())].slice(-maxIds);
    const gap = { earliest, latest, limit: maxPerResponse, minDepth: 0 };
    let isCutOff = false;
    await query.ask(`get_missing_events ${latest.join(' ')}`, async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const jsons = await remote.missingEvents(server, roomId, gap, request);
      const isNew = ({ eventId }: RoomEvent) => eventId !== event.eventId && !found.has(eventId);
      const taken = await responses.verifyWanted(query, server, jsons, isNew);
      const known = await this.#deps.placement.find(taken.keys());
      for (const [id, stored] of known) if (hasState(stored)) taken.delete(id);
      isCutOff = jsons.length >= maxPerResponse;
      return addReachable(missing.keys(), taken, found) || undefined;
    });
    return isCutOff ? 'more' : undefined;
  }
}

/**
 * Adds the events that are connected to the missing events; a server may send unrelated events. @returns the number of
 * added events
 */
function addReachable(
  missing: Iterable<string>,
  taken: ReadonlyMap<string, VerifiedEvent>,
  found: Map<string, VerifiedEvent>,
): number {
  const before = found.size;
  const wanted = [...missing];
  for (const id of wanted) {
    const one = found.has(id) ? undefined : taken.get(id);
    if (!one || found.size >= maxEvents) continue;
    found.set(id, one);
    wanted.push(...one.event.prevEventIds);
  }
  return found.size - before;
}

/** Sorts events topologically, oldest first. Events in a cycle come in any order. */
function topologicalOrder(event: RoomEvent, found: ReadonlyMap<string, VerifiedEvent>): VerifiedEvent[] {
  const ordered: VerifiedEvent[] = [];
  const seen = new Set<string>([event.eventId]);
  const path: { one: VerifiedEvent | undefined; ids: readonly string[]; next: number }[] = [
    { one: undefined, ids: event.prevEventIds, next: 0 },
  ];
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const id = top.ids[top.next++];
    const one = id === undefined || seen.has(id) ? undefined : found.get(id);
    if (one) {
      seen.add(id!);
      path.push({ one, ids: one.event.prevEventIds, next: 0 });
    } else if (id === undefined) {
      path.pop();
      if (top.one) ordered.push(top.one);
    }
  }
  return ordered;
}
