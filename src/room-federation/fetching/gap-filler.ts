import type { RoomEvent } from '../../protocol/index.ts';
import type { HeadReader, Placement, VerifiedEvent } from '../../room-engine/index.ts';
import { requestTimeout, type ServerQuery } from '../asking/server-query.ts';
import type { ResponseVerifier } from '../checking/response-verifier.ts';
import type { RemoteEvents } from '../remote-servers.ts';
import { asVerified, hasState } from '../settled.ts';
import type { Staging } from '../staging/staging.ts';

/** Events of one answer, of one gap altogether, and questions about one gap. Behind a wider gap the state is fetched. */
const [maxAtOnce, maxEvents, maxRounds] = [20, 200, 15];

/** Ends of the graph that a question names. */
const maxNamed = 20;

/** Finds the events between what is known of a room and a new event. */
export class GapFiller {
  readonly #deps: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly placement: Placement;
    readonly heads: HeadReader;
    readonly staging: Staging;
  };

  constructor(parts: {
    readonly remote: RemoteEvents;
    readonly responses: ResponseVerifier;
    readonly placement: Placement;
    readonly heads: HeadReader;
    readonly staging: Staging;
  }) {
    this.#deps = parts;
  }

  /**
   * The events that lie between, as far as they can be had: those that wait here already, and those that servers give.
   * @returns each after those of them that it names; nothing is known of whether they are allowed
   */
  async fetchGap(query: ServerQuery, event: RoomEvent): Promise<VerifiedEvent[]> {
    const found = new Map<string, VerifiedEvent>();
    for (let round = 0; round < maxRounds && found.size < maxEvents; round++) {
      const missing = await this.#missing(event, found);
      if (missing.size === 0) break;
      if (await this.#takeOwn(query, missing, found)) continue;
      if (!(await this.#askForMore(query, event, missing, found))) break;
    }
    return inOrder(event, found);
  }

  /** Ids that the event and those found so far name and that are neither stored nor found, with who names them. */
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

  /** Takes what waits here for its place, or is stored without one. @returns whether there is more than before */
  async #takeOwn(
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

  /** @returns whether there is more than before */
  async #askForMore(
    query: ServerQuery,
    event: RoomEvent,
    missing: ReadonlyMap<string, string>,
    found: Map<string, VerifiedEvent>,
  ): Promise<boolean> {
    const { remote, responses, heads } = this.#deps;
    const { roomId, signal } = query;
    const head = await heads.get(roomId);
    const earliest = (head?.extremities ?? []).slice(0, maxNamed).map(({ eventId }) => eventId);
    const latest = [...new Set(missing.values())].slice(-maxNamed);
    const gap = { earliest, latest, limit: maxAtOnce, minDepth: 0 };
    const added = await query.ask('get_missing_events', async (server) => {
      const request = { signal, timeout: requestTimeout.short };
      const jsons = await remote.missingEvents(server, roomId, gap, request);
      const isNew = ({ eventId }: RoomEvent) => eventId !== event.eventId && !found.has(eventId);
      const taken = await responses.verifyWanted(query, server, jsons, isNew);
      const known = await this.#deps.placement.find(taken.keys());
      for (const [id, stored] of known) if (hasState(stored)) taken.delete(id);
      return addReachable(missing.keys(), taken, found) || undefined;
    });
    return added !== undefined;
  }
}

/** Takes what leads back from the missing events without a break; a server may send anything. @returns how many */
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

/** From the oldest on: each event after those of them that it names. Events that name each other come in any order. */
function inOrder(event: RoomEvent, found: ReadonlyMap<string, VerifiedEvent>): VerifiedEvent[] {
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
