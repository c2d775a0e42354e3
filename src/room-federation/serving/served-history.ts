import { notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import { EventWalk } from './event-walk.ts';
import type { PduStore } from './pdu-store.ts';
import { ServerView } from './server-view.ts';

/** Events in one answer. */
const maxEvents = 100;

/** Events from which one walk starts. */
const maxStarts = 100;

/** The part of the history between events that the other server knows and those that it is missing the way to. */
export interface Gap {
  readonly earliest: readonly string[];
  readonly latest: readonly string[];
  readonly limit: number;
  readonly minDepth: number;
}

/**
 * The history of rooms for servers that are in them, or were. What a server may not see is given to it as a redaction
 * would leave it, so that the graph of events stays whole.
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
   * Whether a user of a server was in the room when each of these events was sent, as far as they are known; not where
   * none is.
   */
  async wasJoined(head: RoomHead, serverName: string, eventIds: readonly string[]): Promise<boolean> {
    if (eventIds.length > maxStarts) return false;
    const found = await this.#engine.events.getManyById(eventIds);
    const events = [...found.values()].filter(({ roomNid }) => roomNid === head.roomNid);
    return events.length > 0 && new ServerView(this.#engine, head, serverName).wasJoined(events);
  }

  /** An event of any room. @throws MatrixError M_NOT_FOUND */
  async find(eventId: string): Promise<StoredEvent> {
    const stored = await this.#engine.events.getById(eventId);
    if (!stored || stored.rejected) throw notFound('There is no such event');
    return stored;
  }

  /** The JSON of one event. @throws MatrixError M_NOT_FOUND */
  async event(head: RoomHead, serverName: string, stored: StoredEvent): Promise<string> {
    const [json] = await this.#texts(head, serverName, [stored]);
    if (json === undefined) throw notFound('There is no such event');
    return json;
  }

  /** The JSON of events and those before them, newest first. Unknown ids, and those of other rooms, count for nothing. */
  async backfill(
    head: RoomHead,
    serverName: string,
    from: readonly string[],
    limit: number,
  ): Promise<string[]> {
    const walk = new EventWalk(this.#engine, head.roomNid);
    const events = await walk.newestFirst(from.slice(0, maxStarts), bounded(limit));
    return this.#texts(head, serverName, events);
  }

  /** The JSON of what a server is missing, oldest first. */
  async missing(head: RoomHead, serverName: string, { limit, ...gap }: Gap): Promise<string[]> {
    const walk = new EventWalk(this.#engine, head.roomNid);
    const latest = gap.latest.slice(0, maxStarts);
    const events = await walk.between(gap.earliest, latest, { ...gap, limit: bounded(limit) });
    return this.#texts(head, serverName, events);
  }

  /** The event closest to a time of those that the server may see. @throws MatrixError M_NOT_FOUND */
  async nearest(
    head: RoomHead,
    serverName: string,
    ts: number,
    direction: 'forward' | 'backward',
  ): Promise<StoredEvent> {
    const view = new ServerView(this.#engine, head, serverName);
    const found = await this.#engine.nearestEvents.find(head.roomNid, ts, direction, async (events) => {
      const hidden = await view.hidden(events);
      return events.filter(({ nid, rejected, softFailed }) => !hidden.has(nid) && !rejected && !softFailed);
    });
    if (!found) throw notFound('There is no event that is close to this time');
    return found;
  }

  async #texts(head: RoomHead, serverName: string, events: readonly StoredEvent[]): Promise<string[]> {
    const hidden = await new ServerView(this.#engine, head, serverName).hidden(events);
    const nids = events.map(({ nid }) => nid);
    const texts: string[] = [];
    for await (const some of this.#pdus.read(nids, hidden)) texts.push(...some);
    return texts;
  }
}

const bounded = (limit: number) => Math.min(Math.max(limit, 0), maxEvents);
