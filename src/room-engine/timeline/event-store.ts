import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import { LoadTogether } from '../../kernel/load-together.ts';
import { isStorableText } from '../event-to-send.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import { EventCache, type EventCacheOptions } from './event-cache.ts';
import {
  type HistoryRange,
  readEvents,
  readEventsById,
  readEventsPlacedLater,
  readEventsPlacedOnArrival,
  readHistory,
  readIdsByNid,
  readStoredIds,
  readTimeline,
  type TimelineRange,
} from './event-queries.ts';
import { type EventRow, type OutOfBandRow, outOfBandEventOf, storedEventOf } from './event-row.ts';
import {
  type OutOfBandServer,
  readOutOfBandBetween,
  readOutOfBandById,
  readOutOfBandByNids,
  readOutOfBandServers,
} from './out-of-band-events.ts';
import {
  type HistoryPlace,
  readChangedRooms,
  readNewest,
  readPlaceAt,
  readRoomsBetween,
} from './stream-places.ts';

export type { HistoryPlace } from './stream-places.ts';

/** Maximum number of events in one query; it is low because their JSON has to be parsed. */
const maxRead = 200;

/** A read of at most this many events shares its query with other reads, for instance of events of other rooms. */
const maxReadTogether = 100;

/** Maximum number of cached events that are returned without turns of the event loop in between. */
const maxListedAtOnce = 1_000;

/** Characters of JSON that are parsed between two checks of the clock: a large event. */
const charactersPerCheck = 65_536;

/** Maximum number of ids in a query that returns only ids. */
const maxIds = 2_000;

/** An event and its position on the stream. For a backfilled event: the position of the stream when it was added. */
export interface PositionedEvent {
  readonly position: number;
  readonly stored: StoredEvent;
}

/** The methods that read events. */
export type EventReader = Omit<
  EventStore,
  | 'add'
  | 'markSaved'
  | 'beginRevision'
  | 'endRevision'
  | 'markRedacted'
  | 'forget'
  | 'follow'
  | 'followRemoval'
>;

/** Reads events from memory or else from the database, and caches them. Events never change, except `redactedBy`. */
export class EventStore extends EventCache {
  readonly #reader: Reader<RoomTables>;
  readonly #loadTogether = new LoadTogether<number, StoredEvent>((nids) => this.#readMany(nids));

  constructor(reader: Reader<RoomTables>, caches: CacheRegistry, options: EventCacheOptions) {
    super(caches, options);
    this.#reader = reader;
  }

  /** Reads an event by nid, out-of-band events included; `undefined` when it is not stored. */
  async get(nid: number): Promise<StoredEvent | undefined> {
    return this.peek(nid) ?? (await this.getMany([nid])).get(nid);
  }

  /**
   * Returns events by nid, out-of-band events included, in the order of the nids; events that are not stored are left
   * out. Returns at once when all are cached and they are at most `maxListedAtOnce`.
   */
  list(nids: readonly number[]): StoredEvent[] | Promise<StoredEvent[]> {
    const result: StoredEvent[] = [];
    for (const nid of nids) {
      const cached = result.length < maxListedAtOnce ? this.peek(nid) : undefined;
      if (!cached) return this.#readList(nids);
      result.push(cached);
    }
    return result;
  }

  async #readList(nids: readonly number[]): Promise<StoredEvent[]> {
    const result = await this.getMany(nids);
    return nids.map((nid) => result.get(nid)).filter((stored) => stored !== undefined);
  }

  /** Reads events by nid, out-of-band events included; events that are not stored are absent. */
  async getMany(nids: Iterable<number>): Promise<Map<number, StoredEvent>> {
    const result = new Map<number, StoredEvent>();
    const missing: number[] = [];
    await this.slices.each(new Set(nids), (nid) => {
      const cached = this.peek(nid);
      if (cached) result.set(nid, cached);
      else missing.push(nid);
    });
    const mayReadTogether = missing.length > 0 && missing.length <= maxReadTogether;
    const read = await (mayReadTogether ? this.#loadTogether.getMany(missing) : this.#readMany(missing));
    for (const nid of missing) {
      const stored = read.get(nid);
      if (stored) result.set(nid, stored);
    }
    const otherNids = missing.filter((nid) => !result.has(nid));
    for (const row of await readOutOfBandByNids(this.#reader, otherNids)) {
      result.set(row.nid, this.#restoreOutOfBand(row));
    }
    return result;
  }

  async #readMany(nids: readonly number[]): Promise<ReadonlyMap<number, StoredEvent>> {
    const result = new Map<number, StoredEvent>();
    for (let start = 0; start < nids.length; start += maxRead) {
      if (start > 0) await this.slices.pauseIfDue();
      const chunk = nids.slice(start, start + maxRead);
      for (const stored of await this.#restore(() => readEvents(this.#reader, chunk)))
        result.set(stored.nid, stored);
    }
    return result;
  }

  /** Reads an out-of-band event by its id in a room. Out-of-band events are not found by `getById`. */
  async getOutOfBand(roomNid: number, eventId: string): Promise<StoredEvent | undefined> {
    const row = isStorableText(eventId) ? await readOutOfBandById(this.#reader, roomNid, eventId) : undefined;
    return row && this.#restoreOutOfBand(row);
  }

  /**
   * Reads the out-of-band events that were stored in `(after, upTo]` of the stream, in that order. Their nids are their
   * positions.
   */
  async outOfBandBetween(after: number, upTo: number): Promise<StoredEvent[]> {
    return (await readOutOfBandBetween(this.#reader, after, upTo)).map((row) => this.#restoreOutOfBand(row));
  }

  /** Reads the servers that invited a user to a room out of band, or received the user's knock, newest first. */
  outOfBandServers(roomNid: number, userId: string, limit: number): Promise<OutOfBandServer[]> {
    return readOutOfBandServers(this.#reader, roomNid, userId, limit);
  }

  /** Reads an event by event id; `undefined` when it is not stored. */
  async getById(eventId: string): Promise<StoredEvent | undefined> {
    return (await this.getManyById([eventId])).get(eventId);
  }

  /** Reads events by event id; events that are not stored are absent. */
  async getManyById(eventIds: Iterable<string>): Promise<Map<string, StoredEvent>> {
    const result = new Map<string, StoredEvent>();
    const missing: string[] = [];
    await this.slices.each(new Set(eventIds), (eventId) => {
      const cached = this.peekById(eventId);
      if (cached) result.set(eventId, cached);
      else if (isStorableText(eventId)) missing.push(eventId);
    });
    for (let start = 0; start < missing.length; start += maxRead) {
      if (start > 0) await this.slices.pauseIfDue();
      const chunk = missing.slice(start, start + maxRead);
      for (const stored of await this.#restore(() => readEventsById(this.#reader, chunk)))
        result.set(stored.event.eventId, stored);
    }
    return result;
  }

  /** Returns which of these event ids belong to stored events, without reading the events. */
  async storedIds(eventIds: Iterable<string>): Promise<Set<string>> {
    const ids = [...new Set(eventIds)];
    const stored = new Set(ids.filter((eventId) => this.peekById(eventId) !== undefined));
    const otherIds = ids.filter((eventId) => !stored.has(eventId) && isStorableText(eventId));
    for (let start = 0; start < otherIds.length; start += maxIds) {
      const result = await readStoredIds(this.#reader, otherIds.slice(start, start + maxIds));
      for (const eventId of result) stored.add(eventId);
    }
    return stored;
  }

  /** Returns the event ids of events by nid, without reading the events; events that are not stored are absent. */
  async idsOf(nids: Iterable<number>): Promise<Map<number, string>> {
    const ids = new Map<number, string>();
    const missing: number[] = [];
    for (const nid of new Set(nids)) {
      const cached = this.peek(nid);
      if (cached) ids.set(nid, cached.event.eventId);
      else missing.push(nid);
    }
    for (let start = 0; start < missing.length; start += maxIds) {
      const rows = await readIdsByNid(this.#reader, missing.slice(start, start + maxIds));
      for (const { nid, event_id: eventId } of rows) ids.set(nid, eventId);
    }
    return ids;
  }

  /** Reads a page of a room's timeline in stream order, without backfilled events. */
  timeline(roomNid: number, range: TimelineRange): Promise<StoredEvent[]> {
    return this.#restore(() => readTimeline(this.#reader, roomNid, range));
  }

  /**
   * Like `timeline`, without caching the events. For readers of many old events: in the cache, these would displace the
   * events that other readers use.
   */
  async timelineUncached(roomNid: number, range: TimelineRange): Promise<StoredEvent[]> {
    const rows = await readTimeline(this.#reader, roomNid, range);
    return this.#parse(rows, (row) => this.peek(row.nid) ?? storedEventOf(row));
  }

  /**
   * Reads a page of a room's history in topological order: by depth, then by position on the stream.
   * @param from as in `readHistory`
   */
  history(roomNid: number, from: HistoryPlace | undefined, range: HistoryRange): Promise<StoredEvent[]> {
    return this.#restore(() => readHistory(this.#reader, roomNid, from, range));
  }

  /**
   * Returns the place in a room's history that corresponds to a position on the stream: after the newest event up to
   * that position.
   */
  placeAt(roomNid: number, position: number): Promise<HistoryPlace> {
    return readPlaceAt(this.#reader, roomNid, position);
  }

  /** Returns which of these rooms have new timeline events after a position on the stream, as nids. */
  changedRooms(roomNids: readonly number[], after: number): Promise<Set<number>> {
    return readChangedRooms(this.#reader, roomNids, after);
  }

  /** Returns the position of the newest timeline event of each room, by room nid. */
  newestPositions(roomNids: readonly number[]): Promise<Map<number, number>> {
    return readNewest(this.#reader, roomNids);
  }

  /**
   * Returns the ids of the rooms with events that were stored, placed or backfilled in `(after, upTo]` of the stream.
   */
  roomsChangedBetween(after: number, upTo: number): Promise<string[]> {
    return readRoomsBetween(this.#reader, after, upTo);
  }

  /** Reads the events that were added to the ends of timelines in `(after, upTo]` of the stream, in that order. */
  async between(after: number, upTo: number, limit: number): Promise<StoredEvent[]> {
    const places = await this.#places(after, upTo, limit, { backfilled: false });
    return places.map(({ stored }) => stored);
  }

  /** Like `between`, including events that were backfilled in that range. */
  betweenWithBackfill(after: number, upTo: number, limit: number): Promise<PositionedEvent[]> {
    return this.#places(after, upTo, limit, { backfilled: true });
  }

  async #places(
    after: number,
    upTo: number,
    limit: number,
    options: { backfilled: boolean },
  ): Promise<PositionedEvent[]> {
    const onArrival = await this.#restore(() => readEventsPlacedOnArrival(this.#reader, after, upTo, limit));
    const result = onArrival.map((stored) => ({ position: stored.nid, stored }));
    const positions = new Map<number, number>();
    const later = await this.#restore(async () => {
      const rows = await readEventsPlacedLater(this.#reader, after, upTo, limit, options);
      for (const { nid, position } of rows) positions.set(nid, position);
      return rows;
    });
    for (const stored of later) result.push({ position: positions.get(stored.nid) ?? 0, stored });
    return result.sort((a, b) => a.position - b.position).slice(0, limit);
  }

  /** Reads rows of events and caches the events, in the order of the rows. */
  async #restore(query: () => Promise<EventRow[]>): Promise<StoredEvent[]> {
    const read = this.beginRead();
    try {
      const rows = await query();
      return await this.#parse(rows, (row) => this.peek(row.nid) ?? this.cacheRead(storedEventOf(row), read));
    } finally {
      this.endRead(read);
    }
  }

  /** Calls `parse` for each row, with pauses where due: 200 events may have 12 MB of JSON. */
  async #parse(rows: readonly EventRow[], parse: (row: EventRow) => StoredEvent): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    let unchecked = 0;
    for (const row of rows) {
      events.push(parse(row));
      unchecked += row.json.length;
      if (unchecked < charactersPerCheck) continue;
      unchecked = 0;
      const pause = this.slices.pauseIfDue();
      if (pause) await pause;
    }
    return events;
  }

  #restoreOutOfBand(row: OutOfBandRow): StoredEvent {
    return this.peek(row.nid) ?? this.cacheSaved(outOfBandEventOf(row));
  }
}
