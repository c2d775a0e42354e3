import type { RoomEvent, RoomVersion } from '../../protocol/index.ts';
import type { HeadReader, Placement, VerifiedEvent } from '../../room-engine/index.ts';
import { asVerified, hasState } from '../checking/known-events.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import { requestTimeout, type ServerQuery } from '../querying/server-query.ts';
import type { RemoteEvents } from '../remote-servers.ts';

/** Maximum number of events per response. */
const maxPerResponse = 20;

/** Maximum number of events per gap. For a wider gap the state is fetched instead. */
const maxEvents = 200;

/** Maximum number of requests per gap. */
const maxRounds = 15;

/** Maximum number of event ids in `earliest_events` and in `latest_events` of a request. */
const maxIds = 20;

/** Reads received events that are not placed yet (`Staging`). */
export interface StagedEvents {
  /** Reads an event of a room; `undefined` when it is not staged. */
  find(roomId: string, eventId: string, version: RoomVersion): Promise<VerifiedEvent | undefined>;
}

export interface GapFillerDeps {
  readonly remote: RemoteEvents;
  readonly responses: ResponseVerifier;
  readonly placement: Placement;
  readonly heads: HeadReader;
  readonly staging: StagedEvents;
}

/** Finds the events between the known history of a room and a new event. */
export class GapFiller {
  readonly #deps: GapFillerDeps;

  constructor(deps: GapFillerDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the missing events before an event, from the staged events, the stored outliers and remote servers.
   * @returns events in topological order, oldest first; their authorization is not checked yet
   */
  async fetchGap(query: ServerQuery, event: RoomEvent): Promise<VerifiedEvent[]> {
    const gapEvents = new Map<string, VerifiedEvent>();
    for (let round = 0; round < maxRounds && gapEvents.size < maxEvents; round++) {
      const missing = await this.#missing(event, gapEvents);
      if (missing.size === 0) break;
      if (await this.#addLocal(query, missing, gapEvents)) continue;
      if ((await this.#addFromServers(query, event, missing, gapEvents)) !== 'more') break;
    }
    return topologicalOrder(event, gapEvents);
  }

  /**
   * Returns the ids of previous events that are neither stored with their state nor in `gapEvents`, each with the id
   * of the event that refers to it.
   */
  async #missing(
    event: RoomEvent,
    gapEvents: ReadonlyMap<string, VerifiedEvent>,
  ): Promise<Map<string, string>> {
    const missing = new Map<string, string>();
    for (const referring of [event, ...[...gapEvents.values()].map(({ event }) => event)]) {
      for (const id of referring.prevEventIds) {
        if (id !== event.eventId && !gapEvents.has(id) && !missing.has(id))
          missing.set(id, referring.eventId);
      }
    }
    for (const [id, stored] of await this.#deps.placement.find(missing.keys())) {
      if (hasState(stored)) missing.delete(id);
    }
    return missing;
  }

  /** Adds missing events that are staged or stored as outliers. @returns whether an event was added */
  async #addLocal(
    { version, roomId, roomNid }: ServerQuery,
    missing: ReadonlyMap<string, string>,
    gapEvents: Map<string, VerifiedEvent>,
  ): Promise<boolean> {
    const before = gapEvents.size;
    for (const [id, stored] of await this.#deps.placement.find(missing.keys())) {
      if (stored.roomNid === roomNid) gapEvents.set(id, asVerified(stored));
    }
    for (const id of missing.keys()) {
      const staged = await this.#deps.staging.find(roomId, id, version);
      if (staged) gapEvents.set(id, staged);
    }
    return gapEvents.size > before;
  }

  /**
   * Adds missing events with `POST /get_missing_events/{roomId}`.
   * @returns 'more' when the response was cut off at its limit. A shorter response has everything that the server is
   * willing to return, so no further request about this gap follows.
   */
  async #addFromServers(
    query: ServerQuery,
    event: RoomEvent,
    missing: ReadonlyMap<string, string>,
    gapEvents: Map<string, VerifiedEvent>,
  ): Promise<'more' | undefined> {
    const { remote, responses, heads } = this.#deps;
    const { roomId, signal } = query;
    const head = await heads.get(roomId);
    const earliest = (head?.extremities ?? []).slice(0, maxIds).map(({ eventId }) => eventId);
    const latest = [...new Set(missing.values())].slice(-maxIds);
    const gap = { earliest, latest, limit: maxPerResponse, minDepth: 0 };
    let isCutOff = false;
    await query.request(`get_missing_events ${latest.join(' ')}`, async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const jsons = await remote.missingEvents(server, roomId, gap, request);
      const isNew = ({ eventId }: RoomEvent) => eventId !== event.eventId && !gapEvents.has(eventId);
      const received = await responses.verifyWanted(query, server, jsons, isNew);
      const known = await this.#deps.placement.find(received.keys());
      for (const [id, stored] of known) if (hasState(stored)) received.delete(id);
      isCutOff = jsons.length >= maxPerResponse;
      return addReachable(missing.keys(), received, gapEvents) || undefined;
    });
    return isCutOff ? 'more' : undefined;
  }
}

/**
 * Adds the received missing events and the received events before them; a server may send unrelated events.
 * @returns the number of added events
 */
function addReachable(
  missing: Iterable<string>,
  received: ReadonlyMap<string, VerifiedEvent>,
  gapEvents: Map<string, VerifiedEvent>,
): number {
  const before = gapEvents.size;
  const wanted = [...missing];
  for (const id of wanted) {
    const verified = gapEvents.has(id) ? undefined : received.get(id);
    if (!verified || gapEvents.size >= maxEvents) continue;
    gapEvents.set(id, verified);
    wanted.push(...verified.event.prevEventIds);
  }
  return gapEvents.size - before;
}

/** Sorts events topologically, oldest first. Events in a cycle come in any order. */
function topologicalOrder(event: RoomEvent, gapEvents: ReadonlyMap<string, VerifiedEvent>): VerifiedEvent[] {
  const ordered: VerifiedEvent[] = [];
  const seen = new Set<string>([event.eventId]);
  const path: { verified: VerifiedEvent | undefined; ids: readonly string[]; next: number }[] = [
    { verified: undefined, ids: event.prevEventIds, next: 0 },
  ];
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const id = top.ids[top.next++];
    const verified = id === undefined || seen.has(id) ? undefined : gapEvents.get(id);
    if (verified) {
      seen.add(id!);
      path.push({ verified, ids: verified.event.prevEventIds, next: 0 });
    } else if (id === undefined) {
      path.pop();
      if (top.verified) ordered.push(top.verified);
    }
  }
  return ordered;
}
