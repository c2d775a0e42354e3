import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';

/**
 * Maximum number of events that are read for each event that the request allows, because some of the read events are
 * not returned.
 */
const readsPerEvent = 5;

/** Walks the history of one room from events to their previous events. Ignores events of other rooms. */
export class EventWalk {
  readonly #engine: RoomReader;
  readonly #roomNid: number;
  /** Events read ahead in one query, by event id. */
  readonly #ahead = new Map<string, StoredEvent>();

  constructor(engine: RoomReader, roomNid: number) {
    this.#engine = engine;
    this.#roomNid = roomNid;
  }

  /**
   * Returns these events and the events before them, ordered by depth, the greatest depth first.
   * Source: server-server API, `GET /backfill/{roomId}`.
   */
  async newestFirst(from: readonly string[], limit: number): Promise<StoredEvent[]> {
    const served: StoredEvent[] = [];
    const seen = new Set(from);
    const waiting = (await this.#events(seen)).sort(byAge);
    await this.#readAhead(waiting.at(-1), limit);
    for (let readsLeft = limit * readsPerEvent; readsLeft > 0 && served.length < limit; ) {
      const next = waiting.pop();
      if (!next) break;
      if (isServed(next)) served.push(next);
      const previous = await this.#previousEvents([next], seen);
      readsLeft -= Math.max(1, previous.length);
      for (const stored of previous) insertByAge(waiting, stored);
    }
    return served;
  }

  /**
   * Returns the events between `earliest` and `latest`, excluding both, found breadth first from `latest`.
   * Source: server-server API, `POST /get_missing_events/{roomId}`.
   * @returns oldest first
   */
  async between(
    earliest: readonly string[],
    latest: readonly string[],
    { limit, minDepth }: { limit: number; minDepth: number },
  ): Promise<StoredEvent[]> {
    const served: StoredEvent[] = [];
    const known = new Set(earliest);
    let level = await this.#events(new Set(latest).difference(known));
    const seen = known.union(new Set(latest));
    await this.#readAhead(level.toSorted(byAge).at(-1), limit);
    for (
      let readsLeft = limit * readsPerEvent;
      readsLeft > 0 && level.length > 0 && served.length < limit;
    ) {
      const previous = await this.#previousEvents(level, seen);
      level = previous.filter(({ event }) => event.depth >= minDepth).slice(0, readsLeft);
      readsLeft -= level.length;
      for (const stored of level) if (isServed(stored) && served.length < limit) served.push(stored);
    }
    return served.sort(byAge);
  }

  async #previousEvents(events: readonly StoredEvent[], seen: Set<string>): Promise<StoredEvent[]> {
    const wanted = new Set<string>();
    for (const { event } of events) {
      for (const eventId of event.prevEventIds) if (!seen.has(eventId)) wanted.add(eventId);
    }
    for (const eventId of wanted) seen.add(eventId);
    return this.#events(wanted);
  }

  /** Returns the events that are stored in this room. */
  async #events(eventIds: Iterable<string>): Promise<StoredEvent[]> {
    const ids = [...eventIds];
    const missing = ids.filter((eventId) => !this.#ahead.has(eventId));
    const loaded = missing.length === 0 ? undefined : await this.#engine.events.getManyById(missing);
    return ids
      .map((eventId) => this.#ahead.get(eventId) ?? loaded?.get(eventId))
      .filter((stored) => stored?.roomNid === this.#roomNid)
      .filter((stored) => stored !== undefined);
  }

  /**
   * Reads events ahead in timeline order: in a linear history, as most histories are, these are the previous events.
   */
  async #readAhead(newest: StoredEvent | undefined, limit: number): Promise<void> {
    if (!newest || limit < 3) return;
    const from = { depth: newest.event.depth, stream: Number.MAX_SAFE_INTEGER };
    const read = await this.#engine.events.history(this.#roomNid, from, { limit, direction: 'backward' });
    for (const stored of read) this.#ahead.set(stored.event.eventId, stored);
  }
}

/** Whether an event is returned: rejected events are useless to other servers, and outliers are not in the history. */
const isServed = ({ rejected, softFailed, stream }: StoredEvent) =>
  !rejected && (softFailed || stream !== undefined);

/** Orders events by depth, the smallest depth first. */
const byAge = (a: StoredEvent, b: StoredEvent) => a.event.depth - b.event.depth || a.nid - b.nid;

function insertByAge(sorted: StoredEvent[], stored: StoredEvent): void {
  const index = sorted.findIndex((other) => byAge(other, stored) > 0);
  sorted.splice(index === -1 ? sorted.length : index, 0, stored);
}
