import { notFound } from '../../protocol/index.ts';
import { isExpired, type RoomHead, type RoomReader, type StoredEvent } from '../../room-engine/index.ts';
import { EventWalk } from './event-walk.ts';
import type { PduStore } from './pdu-store.ts';
import { ServerView } from './server-view.ts';

/** Maximum number of events in a response. */
const maxEvents = 100;

/** Maximum number of event ids of a request where a walk through the history begins. */
const maxStarts = 100;

/** The gap in a remote server's history, as in `POST /get_missing_events/{roomId}`. */
export interface Gap {
  readonly earliest: readonly string[];
  readonly latest: readonly string[];
  readonly limit: number;
  readonly minDepth: number;
}

/**
 * The history of rooms for servers that are or were in them. Events that the server may not see, and expired messages
 * that are not deleted yet, are returned in redacted form, so that the event graph stays complete.
 * Source: server-server API, "Backfilling and retrieving missing events" and "Retrieving events".
 */
export class ServedHistory {
  readonly #engine: RoomReader;
  readonly #pdus: PduStore;

  constructor(engine: RoomReader, pdus: PduStore) {
    this.#engine = engine;
    this.#pdus = pdus;
  }

  /**
   * Whether a user of the server was joined before each of these events. Ignores unknown events; `false` when all are
   * unknown, when the state before one of them is unknown, and for more than `maxStarts` events.
   */
  async wasJoined(head: RoomHead, serverName: string, eventIds: readonly string[]): Promise<boolean> {
    if (eventIds.length > maxStarts) return false;
    const eventsById = await this.#engine.events.getManyById(eventIds);
    const events = [...eventsById.values()].filter(({ roomNid }) => roomNid === head.roomNid);
    return events.length > 0 && new ServerView(this.#engine, head, serverName).wasJoined(events);
  }

  /** Returns an event of any room. @throws MatrixError M_NOT_FOUND also for a rejected event */
  async find(eventId: string): Promise<StoredEvent> {
    const stored = await this.#engine.events.getById(eventId);
    if (!stored || stored.rejected) throw notFound('Event not found');
    return stored;
  }

  /** Returns the JSON of one event. @throws MatrixError M_NOT_FOUND also when it has expired */
  async event(head: RoomHead, serverName: string, stored: StoredEvent): Promise<string> {
    if (isExpired(stored, await this.#engine.retention.expiredBefore(head)))
      throw notFound('Event not found');
    const [json] = await this.#jsonOf(head, serverName, [stored]);
    if (json === undefined) throw notFound('Event not found');
    return json;
  }

  /**
   * Returns the JSON of the named events and of the events before them, newest first. Ignores unknown event ids
   * and ids of events of other rooms. Leaves out an event whose `prev_events` are not all stored, for instance
   * after a purge, unless `from` names it: some servers cannot accept such an event, and then back off
   * for long before they accept the events that follow.
   */
  async backfill(
    head: RoomHead,
    serverName: string,
    from: readonly string[],
    limit: number,
  ): Promise<string[]> {
    const walk = new EventWalk(this.#engine, head.roomNid);
    const events = await walk.newestFirst(from.slice(0, maxStarts), boundedLimit(limit));
    const requested = new Set(from);
    const walked = new Set(events.map(({ event }) => event.eventId));
    const unrequested = events.filter(({ event }) => !requested.has(event.eventId));
    const previousIds = new Set(unrequested.flatMap(({ event }) => event.prevEventIds)).difference(walked);
    const missing = previousIds.difference(await this.#engine.events.storedIds(previousIds));
    const served = events.filter(
      ({ event }) => requested.has(event.eventId) || !event.prevEventIds.some((id) => missing.has(id)),
    );
    return this.#jsonOf(head, serverName, served);
  }

  /** Returns the JSON of the events in a gap, oldest first. */
  async missing(head: RoomHead, serverName: string, { limit, ...gap }: Gap): Promise<string[]> {
    const walk = new EventWalk(this.#engine, head.roomNid);
    const latest = gap.latest.slice(0, maxStarts);
    const events = await walk.between(gap.earliest, latest, { ...gap, limit: boundedLimit(limit) });
    return this.#jsonOf(head, serverName, events);
  }

  /**
   * Returns the event that is closest to a timestamp, among the events that the server may see.
   * @throws MatrixError M_NOT_FOUND
   */
  async nearest(
    head: RoomHead,
    serverName: string,
    ts: number,
    direction: 'forward' | 'backward',
  ): Promise<StoredEvent> {
    const view = new ServerView(this.#engine, head, serverName);
    const nearest = await this.#engine.nearestEvents.find(head.roomNid, ts, direction, async (events) => {
      const hidden = await view.hidden(events);
      return events.filter(({ nid, rejected, softFailed }) => !hidden.has(nid) && !rejected && !softFailed);
    });
    if (!nearest) throw notFound('No event found for this timestamp');
    return nearest;
  }

  async #jsonOf(head: RoomHead, serverName: string, events: readonly StoredEvent[]): Promise<string[]> {
    const hidden = await new ServerView(this.#engine, head, serverName).hidden(events);
    const nids = events.map(({ nid }) => nid);
    const jsons: string[] = [];
    for await (const chunk of this.#pdus.read(nids, hidden)) jsons.push(...chunk);
    return jsons;
  }
}

const boundedLimit = (limit: number) => Math.min(Math.max(limit, 0), maxEvents);
