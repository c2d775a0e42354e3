import { BriefMap } from '../../kernel/brief-map.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Reader } from '../../kernel/database/index.ts';
import { LoadTogether } from '../../kernel/load-together.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomRemoval } from '../room-removals.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import {
  type HistoryRange,
  readEvents,
  readEventsById,
  readEventsPlacedLater,
  readEventsPlacedOnArrival,
  readHistory,
  readStoredIds,
  readTimeline,
  type TimelineRange,
} from './event-queries.ts';
import { type EventRow, type OutOfBandRow, outOfBandEventOf, storedEventOf } from './event-row.ts';
import { sizeOfEvent } from './event-size.ts';
import { isStorableText } from './event-to-send.ts';
import { freezeEvent } from './freeze-event.ts';
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

/** Maximum number of ids in a query that returns only ids. */
const maxIds = 2_000;

/**
 * An event and its position on the stream; the position of a backfilled event is that at which it was added.
 */
export interface PositionedEvent {
  readonly position: number;
  readonly stored: StoredEvent;
}

export interface EventStoreOptions {
  /** Events that are cached at factor 1 (`event_cache_size`). */
  readonly size: number;
  readonly slices: TimeSlices;
  /** Freezes events that are on disk (`use_frozen_dicts`). */
  readonly freezes: boolean;
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

/** Reads and caches events. Events never change, except `redactedBy`. */
export class EventStore {
  readonly #reader: Reader<RoomTables>;
  readonly #freezes: boolean;
  readonly #slices: TimeSlices;
  readonly #byNid: Cache<number, StoredEvent>;
  readonly #nids: Cache<string, number>;
  readonly #together = new LoadTogether<number, StoredEvent>((nids) => this.#readMany(nids));
  /** Events that are not on disk yet, and so cannot be read again when the cache drops them. */
  readonly #unsaved = new BriefMap<number, StoredEvent>();
  readonly #unsavedIds = new BriefMap<string, number>();
  /** Revised copies that replace cached events, until all of them are in the cache. */
  readonly #revisions = new Set<ReadonlyMap<number, StoredEvent>>();

  constructor(
    reader: Reader<RoomTables>,
    caches: CacheRegistry,
    { size, slices, freezes }: EventStoreOptions,
  ) {
    this.#reader = reader;
    this.#slices = slices;
    this.#freezes = freezes;
    this.#byNid = caches.create('events', { size, maxBytes: 64 * MiB, sizeOf: sizeOfEvent });
    this.#nids = caches.create('event_ids', { size, maxBytes: 4 * MiB });
  }

  /** Adds an event that is about to be written; it stays in memory until `markSaved` or `forget`. */
  add(stored: StoredEvent): void {
    this.#unsaved.set(stored.nid, stored);
    if (!stored.outOfBand) this.#unsavedIds.set(stored.event.eventId, stored.nid);
    this.#remember(stored);
  }

  /** Marks an event as written to disk. */
  markSaved(stored: StoredEvent): void {
    this.#settled(stored);
    if (this.#freezes) freezeEvent(stored.event);
  }

  /** Returns whether an event is on disk. */
  isSaved({ nid }: StoredEvent): boolean {
    return this.#unsaved.get(nid) === undefined;
  }

  /**
   * Replaces events by revised copies for all readers at once, however many they are.
   * @param copies by nid; they must not change any more
   */
  beginRevision(copies: ReadonlyMap<number, StoredEvent>): void {
    this.#revisions.add(copies);
  }

  /**
   * Ends a revision: the copies are on disk, or (`isSaved` false) could not be written, and the cached events
   * are valid again.
   */
  async endRevision(copies: ReadonlyMap<number, StoredEvent>, isSaved: boolean): Promise<void> {
    if (isSaved) await this.#slices.each(copies.values(), (copy) => this.#remember(copy));
    this.#revisions.delete(copies);
  }

  /** Marks an event as redacted, since the cache may have read it before the redaction was on disk. */
  markRedacted(nid: number, by: number): void {
    const stored = this.peek(nid);
    if (stored) stored.redactedBy = by;
  }

  /**
   * Applies a fact of the writing process to the cache: adds its event, and marks the event that it redacts.
   */
  follow({ stored, end, redacts }: RoomFact): void {
    if (!end) this.#byNid.deleteWhere(({ roomNid }) => roomNid === stored.roomNid);
    this.#cacheSaved(stored);
    if (redacts !== undefined) this.markRedacted(redacts, stored.nid);
  }

  /** Drops cached events that were deleted, or whose original contents were deleted. */
  followRemoval(removal: RoomRemoval): void {
    if (removal.kind === 'purged') this.#byNid.deleteWhere(({ roomNid }) => roomNid === removal.roomNid);
    if (removal.kind !== 'pruned') return;
    for (const nid of removal.eventNids) {
      const stored = this.peek(nid);
      if (stored) this.forget(stored);
    }
  }

  /** Removes an event that could not be written. */
  forget(stored: StoredEvent): void {
    this.#settled(stored);
    this.#byNid.delete(stored.nid);
    if (!stored.outOfBand) this.#nids.delete(stored.event.eventId);
  }

  /** Returns a cached event. */
  peek(nid: number): StoredEvent | undefined {
    return (
      (this.#revisions.size > 0 ? this.#revised(nid) : undefined) ??
      this.#byNid.get(nid) ??
      this.#unsaved.get(nid)
    );
  }

  peekById(eventId: string): StoredEvent | undefined {
    const nid = this.#nids.get(eventId) ?? this.#unsavedIds.get(eventId);
    return nid === undefined ? undefined : this.peek(nid);
  }

  async get(nid: number): Promise<StoredEvent | undefined> {
    return this.peek(nid) ?? (await this.getMany([nid])).get(nid);
  }

  /**
   * Returns events by nid, out-of-band events included, in the order of the nids; events that are not stored are left out. Returns at
   * once when they are cached.
   */
  list(nids: readonly number[]): StoredEvent[] | Promise<StoredEvent[]> {
    const found: StoredEvent[] = [];
    for (const nid of nids) {
      const cached = found.length < maxListedAtOnce ? this.peek(nid) : undefined;
      if (!cached) return this.#readList(nids);
      found.push(cached);
    }
    return found;
  }

  async #readList(nids: readonly number[]): Promise<StoredEvent[]> {
    const found = await this.getMany(nids);
    return nids.map((nid) => found.get(nid)).filter((stored) => stored !== undefined);
  }

  /** Reads events by nid, out-of-band events included; events that are not stored are absent. */
  async getMany(nids: Iterable<number>): Promise<Map<number, StoredEvent>> {
    const found = new Map<number, StoredEvent>();
    const missing: number[] = [];
    await this.#slices.each(new Set(nids), (nid) => {
      const cached = this.peek(nid);
      if (cached) found.set(nid, cached);
      else missing.push(nid);
    });
    const isSmall = missing.length > 0 && missing.length <= maxReadTogether;
    const read = await (isSmall ? this.#together.getMany(missing) : this.#readMany(missing));
    for (const nid of missing) {
      const stored = read.get(nid);
      if (stored) found.set(nid, stored);
    }
    const others = missing.filter((nid) => !found.has(nid));
    for (const row of await readOutOfBandByNids(this.#reader, others)) {
      found.set(row.nid, this.#restoreOutOfBand(row));
    }
    return found;
  }

  async #readMany(nids: readonly number[]): Promise<ReadonlyMap<number, StoredEvent>> {
    const found = new Map<number, StoredEvent>();
    for (let start = 0; start < nids.length; start += maxRead) {
      if (start > 0) await this.#slices.pauseIfDue();
      const rows = await readEvents(this.#reader, nids.slice(start, start + maxRead));
      for (const row of rows) found.set(row.nid, this.#restore(row));
    }
    return found;
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

  /**
   * Reads the servers that invited a user to a room out of band, or accepted the user's knock, newest first.
   */
  outOfBandServers(roomNid: number, userId: string, limit: number): Promise<OutOfBandServer[]> {
    return readOutOfBandServers(this.#reader, roomNid, userId, limit);
  }

  async getById(eventId: string): Promise<StoredEvent | undefined> {
    return (await this.getManyById([eventId])).get(eventId);
  }

  /** Reads events by event id; events that are not stored are absent. */
  async getManyById(eventIds: Iterable<string>): Promise<Map<string, StoredEvent>> {
    const found = new Map<string, StoredEvent>();
    const missing: string[] = [];
    await this.#slices.each(new Set(eventIds), (eventId) => {
      const cached = this.peekById(eventId);
      if (cached) found.set(eventId, cached);
      else if (isStorableText(eventId)) missing.push(eventId);
    });
    for (let start = 0; start < missing.length; start += maxRead) {
      if (start > 0) await this.#slices.pauseIfDue();
      const rows = await readEventsById(this.#reader, missing.slice(start, start + maxRead));
      for (const row of rows) found.set(row.event_id, this.#restore(row));
    }
    return found;
  }

  /** Returns which of these events are stored; cheaper than reading them. */
  async storedIds(eventIds: Iterable<string>): Promise<Set<string>> {
    const ids = [...new Set(eventIds)];
    const stored = new Set(ids.filter((eventId) => this.peekById(eventId) !== undefined));
    const others = ids.filter((eventId) => !stored.has(eventId) && isStorableText(eventId));
    for (let start = 0; start < others.length; start += maxIds) {
      const found = await readStoredIds(this.#reader, others.slice(start, start + maxIds));
      for (const eventId of found) stored.add(eventId);
    }
    return stored;
  }

  /** Reads a page of a room's timeline in stream order, without backfilled events. */
  async timeline(roomNid: number, range: TimelineRange): Promise<StoredEvent[]> {
    const rows = await readTimeline(this.#reader, roomNid, range);
    return rows.map((row) => this.#restore(row));
  }

  /**
   * Like `timeline`, without caching the events: for readers of many old events, which would displace from the cache
   * the events that other readers use.
   */
  async timelineUncached(roomNid: number, range: TimelineRange): Promise<StoredEvent[]> {
    const rows = await readTimeline(this.#reader, roomNid, range);
    return rows.map((row) => this.peek(row.nid) ?? storedEventOf(row));
  }

  /**
   * Reads a page of a room's history in topological order: by depth, then by position on the stream.
   * @param from where the page begins: after the event with this depth and position; absent: at the end (backward) or at
   * the beginning (forward) of the history
   */
  async history(
    roomNid: number,
    from: HistoryPlace | undefined,
    range: HistoryRange,
  ): Promise<StoredEvent[]> {
    const rows = await readHistory(this.#reader, roomNid, from, range);
    return rows.map((row) => this.#restore(row));
  }

  /**
   * Returns the place in a room's history that corresponds to a position on the stream: after the newest
   * event up to there.
   */
  placeAt(roomNid: number, position: number): Promise<HistoryPlace> {
    return readPlaceAt(this.#reader, roomNid, position);
  }

  /** Returns which of the rooms have new timeline events after a position on the stream. */
  changedRooms(roomNids: readonly number[], after: number): Promise<Set<number>> {
    return readChangedRooms(this.#reader, roomNids, after);
  }

  /** Returns the position of the newest timeline event of each room, by room nid. */
  newestPositions(roomNids: readonly number[]): Promise<Map<number, number>> {
    return readNewest(this.#reader, roomNids);
  }

  /**
   * Returns the ids of the rooms that got events in `(after, upTo]` of the stream, backfilled ones included.
   */
  roomsChangedBetween(after: number, upTo: number): Promise<string[]> {
    return readRoomsBetween(this.#reader, after, upTo);
  }

  /**
   * Reads the events that were added to the ends of timelines in `(after, upTo]` of the stream, in that
   * order.
   */
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
    which: { backfilled: boolean },
  ): Promise<PositionedEvent[]> {
    const rows = await readEventsPlacedOnArrival(this.#reader, after, upTo, limit);
    const found = rows.map((row) => ({ position: row.nid, stored: this.#restore(row) }));
    for (const row of await readEventsPlacedLater(this.#reader, after, upTo, limit, which)) {
      found.push({ position: row.position, stored: this.#restore(row) });
    }
    return found.sort((a, b) => a.position - b.position).slice(0, limit);
  }

  #revised(nid: number): StoredEvent | undefined {
    for (const copies of this.#revisions) {
      const copy = copies.get(nid);
      if (copy) return copy;
    }
    return undefined;
  }

  #restore(row: EventRow): StoredEvent {
    return this.peek(row.nid) ?? this.#cacheSaved(storedEventOf(row));
  }

  #restoreOutOfBand(row: OutOfBandRow): StoredEvent {
    return this.peek(row.nid) ?? this.#cacheSaved(outOfBandEventOf(row));
  }

  /** Caches an event that is on disk. */
  #cacheSaved(stored: StoredEvent): StoredEvent {
    if (this.#freezes) freezeEvent(stored.event);
    this.#remember(stored);
    return stored;
  }

  /** Drops an event from the unsaved ones, unless another copy of it is about to be written. */
  #settled(stored: StoredEvent): void {
    if (this.#unsaved.get(stored.nid) !== stored) return;
    this.#unsaved.delete(stored.nid);
    if (this.#unsavedIds.get(stored.event.eventId) === stored.nid)
      this.#unsavedIds.delete(stored.event.eventId);
  }

  #remember(stored: StoredEvent): void {
    this.#byNid.set(stored.nid, stored);
    if (!stored.outOfBand) this.#nids.set(stored.event.eventId, stored.nid);
  }
}
