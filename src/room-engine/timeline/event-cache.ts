import { BriefMap } from '../../kernel/brief-map.ts';
import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { TimeSlices } from '../../kernel/time-slices.ts';
import type { RoomRemoval } from '../room-removals.ts';
import type { RoomFact, StoredEvent } from '../stored-event.ts';
import { sizeOfEvent } from './event-size.ts';
import { freezeEvent } from './freeze-event.ts';

export interface EventCacheOptions {
  /** Maximum number of cached events (`event_cache_size`), before it is multiplied by the cache factor. */
  readonly size: number;
  readonly slices: TimeSlices;
  /** Freezes events that are on disk (`use_frozen_dicts`). */
  readonly freezesEvents: boolean;
}

/** Changes of stored events since the rows of a read were requested: the rows may be older. */
export interface PendingRead {
  /** The nids of redactions by the nid of the redacted event. */
  readonly redactions: Map<number, number>;
  /** Whether events were deleted meanwhile, so that the events of the read must not be cached. */
  isOutdated: boolean;
}

/** The events in memory: events that are about to be written, and cached events of the database. */
export class EventCache {
  protected readonly slices: TimeSlices;
  readonly #freezesEvents: boolean;
  readonly #byNid: Cache<number, StoredEvent>;
  /** The nids of cached events by event id. */
  readonly #nids: Cache<string, number>;
  /** Events that are not on disk yet, and so cannot be read again when the cache drops them. */
  readonly #unsaved = new BriefMap<number, StoredEvent>();
  /** The nids of the unsaved events by event id. */
  readonly #unsavedIds = new BriefMap<string, number>();
  /** Revised copies that replace cached events, until all of them are in the cache. */
  readonly #revisions = new Set<ReadonlyMap<number, StoredEvent>>();
  readonly #pendingReads = new Set<PendingRead>();

  constructor(caches: CacheRegistry, { size, slices, freezesEvents }: EventCacheOptions) {
    this.slices = slices;
    this.#freezesEvents = freezesEvents;
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
    this.#dropUnsaved(stored);
    if (this.#freezesEvents) freezeEvent(stored.event);
  }

  /** Returns whether an event is on disk. */
  isSaved({ nid }: StoredEvent): boolean {
    return this.#unsaved.get(nid) === undefined;
  }

  /**
   * Replaces any number of events by revised copies, for all readers at the same time.
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
    if (isSaved) await this.slices.each(copies.values(), (copy) => this.#remember(copy));
    this.#revisions.delete(copies);
  }

  /** Marks an event as redacted, because the cache may have read it before the redaction was on disk. */
  markRedacted(nid: number, by: number): void {
    const stored = this.peek(nid);
    if (stored) stored.redactedBy = by;
    for (const { redactions } of this.#pendingReads) redactions.set(nid, by);
  }

  /**
   * Applies a fact of the main process to the cache: adds its event, and marks the event that it redacts. After a fact
   * without an end, the cached events of the room are read again (`RoomFact.end`).
   */
  follow({ stored, end, redacts }: RoomFact): void {
    if (!end) this.#byNid.deleteWhere(({ roomNid }) => roomNid === stored.roomNid);
    this.cacheSaved(stored);
    if (redacts !== undefined) this.markRedacted(redacts, stored.nid);
  }

  /** Drops cached events that were deleted, or whose original contents were deleted. */
  followRemoval(removal: RoomRemoval): void {
    if (removal.kind === 'purged' || removal.kind === 'pruned')
      for (const read of this.#pendingReads) read.isOutdated = true;
    if (removal.kind === 'purged') this.#byNid.deleteWhere(({ roomNid }) => roomNid === removal.roomNid);
    if (removal.kind !== 'pruned') return;
    for (const nid of removal.eventNids) {
      const stored = this.peek(nid);
      if (stored) this.forget(stored);
    }
  }

  /** Removes an event from memory: it could not be written, or was deleted. */
  forget(stored: StoredEvent): void {
    this.#dropUnsaved(stored);
    this.#byNid.delete(stored.nid);
    if (!stored.outOfBand) this.#nids.delete(stored.event.eventId);
  }

  /** Returns an event that is in memory; else `undefined`. */
  peek(nid: number): StoredEvent | undefined {
    return (
      (this.#revisions.size > 0 ? this.#revised(nid) : undefined) ??
      this.#byNid.get(nid) ??
      this.#unsaved.get(nid)
    );
  }

  /** Returns an event that is in memory, by its event id; else `undefined`. */
  peekById(eventId: string): StoredEvent | undefined {
    const nid = this.#nids.get(eventId) ?? this.#unsavedIds.get(eventId);
    return nid === undefined ? undefined : this.peek(nid);
  }

  /** Begins a read of rows, which `endRead` must end. Call before the query. */
  protected beginRead(): PendingRead {
    const read: PendingRead = { redactions: new Map(), isOutdated: false };
    this.#pendingReads.add(read);
    return read;
  }

  protected endRead(read: PendingRead): void {
    this.#pendingReads.delete(read);
  }

  /** Caches an event of a read, with what has changed since its row was read. */
  protected cacheRead(stored: StoredEvent, { redactions, isOutdated }: PendingRead): StoredEvent {
    stored.redactedBy ??= redactions.get(stored.nid);
    return isOutdated ? stored : this.cacheSaved(stored);
  }

  /** Caches an event that is on disk. */
  protected cacheSaved(stored: StoredEvent): StoredEvent {
    if (this.#freezesEvents) freezeEvent(stored.event);
    this.#remember(stored);
    return stored;
  }

  #revised(nid: number): StoredEvent | undefined {
    for (const copies of this.#revisions) {
      const copy = copies.get(nid);
      if (copy) return copy;
    }
    return undefined;
  }

  /** Drops an event from the unsaved events, unless another copy of it is about to be written. */
  #dropUnsaved(stored: StoredEvent): void {
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
