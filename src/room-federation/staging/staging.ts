import { type Cache, type CacheRegistry, MiB } from '../../kernel/caches/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { Sequence } from '../../kernel/streams/index.ts';
import { type Pdu, parseJsonObject, type RoomVersion, roomEventOf } from '../../protocol/index.ts';
import type { VerifiedEvent } from '../../room-engine/index.ts';
import {
  deleteStaged,
  hasStaged,
  insertStaged,
  postponeStaged,
  readStaged,
  readStagedJson,
} from './staging-store.ts';
import type { IncomingTables } from './tables.ts';

/** A staged event: a received event that has not been placed in its room yet. Its JSON is on disk. */
export interface StagedEvent {
  readonly eventId: string;
  readonly roomId: string;
  /** The server that sent it. */
  readonly origin: string;
  /** When it was received, in milliseconds since the epoch. */
  readonly receivedTs: number;
  /** Number of failed attempts. */
  attempts: number;
  /** When the next attempt is due, in milliseconds since the epoch; 0 before the first attempt. */
  retryTs: number;
  /** Whether it is being processed. */
  isUnderWay?: boolean;
  /** Event ids that it waits for: it is retried when all of them are placed. In memory only. */
  missing?: Set<string> | undefined;
}

/**
 * Maximum number of staged events of one room and in total; an entry takes some 300 bytes of memory, its
 * event 2 KiB on disk.
 */
const limits = { room: 2_000, total: 50_000 } as const;

/** Removed events are deleted from disk in batches of this size, or when nothing is staged any more. */
const deleteBatchSize = 100;

/** Maximum number of staged events in the cache: usually an event is processed soon after it has arrived. */
const eventsInMemory = 1_000;

export interface StagingDeps {
  readonly database: Database;
  readonly log: Logger;
  readonly caches: CacheRegistry;
}

/** Received events that are not processed yet: on disk, in order of arrival by room. */
export class Staging {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #ids: Sequence;
  /** The staged events by room id and event id; in each room in order of arrival. */
  readonly #rooms = new Map<string, Map<string, StagedEvent>>();
  readonly #byId = new Map<string, StagedEvent>();
  readonly #events: Cache<string, VerifiedEvent>;
  /** Promises by room id that resolve when more events of the room may be due. */
  readonly #changes = new Map<string, PromiseWithResolvers<void>>();
  /** Ids of removed events that are not deleted from disk yet. */
  #removed: string[] = [];
  #removing: Promise<void> | undefined;

  private constructor({ database, log, caches }: StagingDeps, ids: Sequence) {
    this.#events = caches.create('staged_events', {
      size: eventsInMemory,
      maxBytes: 8 * MiB,
      sizeOf: ({ json }) => 1_000 + 3 * json.length,
    });
    this.#database = database;
    this.#log = log;
    this.#ids = ids;
  }

  /** Loads the events that were staged at the last shutdown. */
  static async open(deps: StagingDeps): Promise<Staging> {
    const { database } = deps;
    const staging = new Staging(deps, await Sequence.open(database, 'incoming_events'));
    const isEmpty = !(await hasStaged(database.reader<IncomingTables>()));
    if (isEmpty) return staging;
    for (const row of await readStaged(database.scanner<IncomingTables>())) {
      staging.#index({
        eventId: row.event_id,
        roomId: row.room_id,
        origin: row.origin,
        receivedTs: row.received_ts,
        attempts: row.attempts,
        retryTs: row.retry_ts,
      });
    }
    return staging;
  }

  /** Number of staged events of all rooms. */
  get size(): number {
    return this.#byId.size;
  }

  /** Rooms with staged events. */
  get rooms(): Iterable<string> {
    return this.#rooms.keys();
  }

  /** When the oldest staged event arrived, in milliseconds since the epoch. */
  get oldestTs(): number | undefined {
    let oldest: number | undefined;
    for (const events of this.#rooms.values()) {
      for (const { receivedTs } of events.values()) {
        if (oldest === undefined || receivedTs < oldest) oldest = receivedTs;
        break;
      }
    }
    return oldest;
  }

  /** Whether an event is staged. */
  has(eventId: string): boolean {
    return this.#byId.has(eventId);
  }

  /** Whether the limits allow `count` more events of the room. */
  hasCapacity(roomId: string, count: number): boolean {
    const countInRoom = this.#rooms.get(roomId)?.size ?? 0;
    return countInRoom + count <= limits.room && this.size + count <= limits.total;
  }

  /** Resolves when the events are on disk. They must belong to the room and not be staged yet. */
  async add(roomId: string, origin: string, events: readonly VerifiedEvent[], now: number): Promise<void> {
    const rows = events.map(({ event, json }) => ({
      id: this.#ids.next(),
      event_id: event.eventId,
      room_id: roomId,
      origin,
      received_ts: now,
      attempts: 0,
      retry_ts: 0,
      json,
    }));
    if (rows.length === 0) return;
    const isBeingDeleted = rows.some((row) => this.#removed.includes(row.event_id));
    if (isBeingDeleted) await this.settled();
    await insertStaged(this.#database, rows);
    for (const verified of events) {
      const { eventId } = verified.event;
      if (this.has(eventId)) continue;
      this.#events.set(eventId, verified);
      this.#index({ eventId, roomId, origin, receivedTs: now, attempts: 0, retryTs: 0 });
    }
    this.#signalChange(roomId);
  }

  /** Returns the first event of the room that is due, not being processed, and not in `waiting`. */
  nextDue(roomId: string, now: number, waiting: ReadonlySet<string>): StagedEvent | undefined {
    for (const staged of this.#rooms.get(roomId)?.values() ?? []) {
      if (staged.retryTs <= now && !staged.isUnderWay && !waiting.has(staged.eventId)) return staged;
    }
    return undefined;
  }

  /** Returns when the next event of the room is due, in milliseconds since the epoch; undefined when none is staged. */
  nextRetry(roomId: string): number | undefined {
    let next: number | undefined;
    for (const { retryTs } of this.#rooms.get(roomId)?.values() ?? []) {
      if (next === undefined || retryTs < next) next = retryTs;
    }
    return next;
  }

  /** Marks an event as placed: events that waited only for it become due. */
  markPlaced(roomId: string, eventId: string): void {
    let isAnyDue = false;
    for (const staged of this.#rooms.get(roomId)?.values() ?? []) {
      if (!staged.missing?.delete(eventId) || staged.missing.size > 0) continue;
      staged.missing = undefined;
      staged.retryTs = 0;
      isAnyDue = true;
    }
    if (isAnyDue) this.#signalChange(roomId);
  }

  /** Resolves when events of the room are added, or become due because the events that they waited for are placed. */
  nextChange(roomId: string): Promise<void> {
    const change = this.#changes.get(roomId) ?? Promise.withResolvers<void>();
    this.#changes.set(roomId, change);
    return change.promise;
  }

  /** Frees the promise that `nextChange` made for a room. */
  endWatch(roomId: string): void {
    this.#changes.delete(roomId);
  }

  /** Reads an event of a room; `undefined` when it is not staged. */
  async find(roomId: string, eventId: string, version: RoomVersion): Promise<VerifiedEvent | undefined> {
    const staged = this.#byId.get(eventId);
    return staged?.roomId === roomId ? this.read(staged, version) : undefined;
  }

  /** Reads the event itself; undefined when it is no longer staged. */
  async read({ eventId }: StagedEvent, version: RoomVersion): Promise<VerifiedEvent | undefined> {
    const inMemory = this.#events.get(eventId);
    if (inMemory) return inMemory;
    const json = await readStagedJson(this.#database.reader<IncomingTables>(), eventId);
    if (json === undefined) return undefined;
    const numbers = version.strictCanonicalJson ? 'values' : 'as written';
    const pdu = parseJsonObject(json, { numbers }) as Pdu;
    return { event: roomEventOf(pdu, version, eventId), json };
  }

  /** Removes an event that is processed or dropped. It is deleted from disk later: processing it twice is harmless. */
  remove(eventId: string): void {
    const staged = this.#byId.get(eventId);
    if (!staged) return;
    this.#byId.delete(eventId);
    this.#events.delete(eventId);
    const eventsOfRoom = this.#rooms.get(staged.roomId);
    eventsOfRoom?.delete(eventId);
    if (eventsOfRoom?.size === 0) this.#rooms.delete(staged.roomId);
    this.#removed.push(eventId);
    if (this.#removed.length >= deleteBatchSize || this.size === 0) this.#removing ??= this.#removeAll();
  }

  /** Schedules the next attempt. */
  async postpone(staged: StagedEvent, retryTs: number, attempts: number): Promise<void> {
    staged.retryTs = retryTs;
    staged.attempts = attempts;
    await postponeStaged(this.#database, staged.eventId, attempts, retryTs);
  }

  /** Resolves when removed events are deleted from disk. */
  async settled(): Promise<void> {
    if (this.#removed.length > 0) this.#removing ??= this.#removeAll();
    await this.#removing;
  }

  async #removeAll(): Promise<void> {
    await new Promise(setImmediate);
    while (this.#removed.length > 0) {
      const eventIds = this.#removed;
      this.#removed = [];
      try {
        await deleteStaged(this.#database, eventIds);
      } catch (error) {
        this.#log.error({ err: error }, 'Processed events could not be deleted from the staging table');
      }
    }
    this.#removing = undefined;
  }

  #signalChange(roomId: string): void {
    this.#changes.get(roomId)?.resolve();
    this.#changes.delete(roomId);
  }

  #index(staged: StagedEvent): void {
    const eventsOfRoom = this.#rooms.get(staged.roomId) ?? new Map<string, StagedEvent>();
    eventsOfRoom.set(staged.eventId, staged);
    this.#rooms.set(staged.roomId, eventsOfRoom);
    this.#byId.set(staged.eventId, staged);
  }
}
