import { RecentlyUsed } from '../../kernel/caches/index.ts';
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

/** An event that waits for its place; the event itself is on disk. */
export interface StagedEvent {
  readonly eventId: string;
  readonly roomId: string;
  /** The server that sent it. */
  readonly origin: string;
  /** Milliseconds since the epoch, as all times here. */
  readonly receivedTs: number;
  attempts: number;
  retryTs: number;
  /** It is getting its place at this moment. */
  isUnderWay?: boolean;
  /** Event ids for which it waits: it is tried again when all of them have come. In memory only. */
  missing?: Set<string> | undefined;
}

/** Events that wait: of one room, and altogether; an entry takes some 300 bytes of memory, its event 2 KiB on disk. */
const limits = { room: 2_000, total: 50_000 } as const;

/** Events that have their places are cleared away so many at a time, or when nothing waits any more. */
const removedTogether = 100;

/** Events that stay in memory until they are used, which is soon as a rule. */
const eventsInMemory = 1_000;

/** What servers have sent and this one has not digested yet: on disk, in the order of arrival by room. */
export class Staging {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #ids: Sequence;
  readonly #rooms = new Map<string, Map<string, StagedEvent>>();
  readonly #byId = new Map<string, StagedEvent>();
  readonly #events = new RecentlyUsed<string, VerifiedEvent>({ max: eventsInMemory });
  #removed: string[] = [];
  #removing: Promise<void> | undefined;

  private constructor(database: Database, log: Logger, ids: Sequence) {
    this.#database = database;
    this.#log = log;
    this.#ids = ids;
  }

  /** With what was left when the program ended. */
  static async open(database: Database, log: Logger): Promise<Staging> {
    const staging = new Staging(database, log, await Sequence.open(database, 'incoming_events'));
    const isEmpty = !(await hasStaged(database.reader<IncomingTables>()));
    if (isEmpty) return staging;
    for (const row of await readStaged(database.scanner<IncomingTables>())) {
      staging.#note({
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

  get size(): number {
    return this.#byId.size;
  }

  /** Rooms in which events wait. */
  get rooms(): Iterable<string> {
    return this.#rooms.keys();
  }

  /** When the event arrived that waits for the longest time. */
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

  has(eventId: string): boolean {
    return this.#byId.has(eventId);
  }

  get(eventId: string): StagedEvent | undefined {
    return this.#byId.get(eventId);
  }

  /** Whether so many more events of the room can wait. */
  hasCapacity(roomId: string, count: number): boolean {
    const ofRoom = this.#rooms.get(roomId)?.size ?? 0;
    return ofRoom + count <= limits.room && this.size + count <= limits.total;
  }

  /** Resolves when the events are on disk; they must be of the room and not be here yet. */
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
    const isBack = rows.some((row) => this.#removed.includes(row.event_id));
    if (isBack) await this.settled();
    await insertStaged(this.#database, rows);
    for (const one of events) {
      const { eventId } = one.event;
      if (this.has(eventId)) continue;
      this.#events.set(eventId, one);
      this.#note({ eventId, roomId, origin, receivedTs: now, attempts: 0, retryTs: 0 });
    }
  }

  /** The first event of the room that may be tried, and is none of those that have to wait. */
  nextDue(roomId: string, now: number, waiting: ReadonlySet<string>): StagedEvent | undefined {
    for (const staged of this.#rooms.get(roomId)?.values() ?? []) {
      if (staged.retryTs <= now && !staged.isUnderWay && !waiting.has(staged.eventId)) return staged;
    }
    return undefined;
  }

  /** When the next event of the room may be tried; `undefined` when there is none. */
  nextRetry(roomId: string): number | undefined {
    let next: number | undefined;
    for (const { retryTs } of this.#rooms.get(roomId)?.values() ?? []) {
      if (next === undefined || retryTs < next) next = retryTs;
    }
    return next;
  }

  /** An event has its place. @returns whether others waited for nothing but it, which may be tried now */
  arrived(roomId: string, eventId: string): boolean {
    let isOver = false;
    for (const staged of this.#rooms.get(roomId)?.values() ?? []) {
      if (!staged.missing?.delete(eventId) || staged.missing.size > 0) continue;
      staged.missing = undefined;
      staged.retryTs = 0;
      isOver = true;
    }
    return isOver;
  }

  /** The event itself. */
  async read({ eventId }: StagedEvent, version: RoomVersion): Promise<VerifiedEvent | undefined> {
    const inMemory = this.#events.get(eventId);
    if (inMemory) return inMemory;
    const json = await readStagedJson(this.#database.reader<IncomingTables>(), eventId);
    if (json === undefined) return undefined;
    const numbers = version.strictCanonicalJson ? 'values' : 'as written';
    const pdu = parseJsonObject(json, { numbers }) as Pdu;
    return { event: roomEventOf(pdu, version, eventId), json };
  }

  /** The event has its place, or will have none. It goes from the disk later: to take it up twice does no harm. */
  remove(eventId: string): void {
    const staged = this.#byId.get(eventId);
    if (!staged) return;
    this.#byId.delete(eventId);
    this.#events.delete(eventId);
    const ofRoom = this.#rooms.get(staged.roomId);
    ofRoom?.delete(eventId);
    if (ofRoom?.size === 0) this.#rooms.delete(staged.roomId);
    this.#removed.push(eventId);
    if (this.#removed.length >= removedTogether || this.size === 0) this.#removing ??= this.#removeAll();
  }

  /** The event is tried again at that time. */
  async postpone(staged: StagedEvent, retryTs: number, attempts: number): Promise<void> {
    staged.retryTs = retryTs;
    staged.attempts = attempts;
    await postponeStaged(this.#database, staged.eventId, attempts, retryTs);
  }

  /** Resolves when what was removed has gone from the disk. */
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
        this.#log.error({ err: error }, 'Events that have their places could not be cleared away');
      }
    }
    this.#removing = undefined;
  }

  #note(staged: StagedEvent): void {
    const ofRoom = this.#rooms.get(staged.roomId) ?? new Map<string, StagedEvent>();
    ofRoom.set(staged.eventId, staged);
    this.#rooms.set(staged.roomId, ofRoom);
    this.#byId.set(staged.eventId, staged);
  }
}
