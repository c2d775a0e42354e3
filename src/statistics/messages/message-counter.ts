import type { Clock, Timer } from '../../kernel/clock.ts';
import type { Database, Statement } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { StatisticsTables } from '../tables.ts';
import { dayOf, hourOf } from '../utc-days.ts';

export interface MessageCounterDeps {
  readonly engine: Pick<RoomReader, 'stream' | 'events'>;
  readonly database: Database;
  readonly streams: Pick<StreamReader, 'current'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  /** Whether to store when the last messages of each room arrived, too. */
  readonly recordsRooms: boolean;
}

/** Milliseconds between two writes. */
const flushInterval = 60_000;

/** Maximum number of events that one query reads after a crash. */
const eventsPerRead = 500;

/** Numbers of messages: not encrypted and encrypted ones, of all users and of local users. */
interface Counts {
  plain: number;
  localPlain: number;
  encrypted: number;
  localEncrypted: number;
}

const addToDay = `INSERT INTO statistics_days (day, messages, local_messages) VALUES (?, ?, ?)
  ON CONFLICT (day) DO UPDATE SET
    messages = statistics_days.messages + excluded.messages,
    local_messages = statistics_days.local_messages + excluded.local_messages`;

const addToHour = `INSERT INTO statistics_hours (hour, plain, local_plain, encrypted, local_encrypted)
  VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (hour) DO UPDATE SET
    plain = statistics_hours.plain + excluded.plain,
    local_plain = statistics_hours.local_plain + excluded.local_plain,
    encrypted = statistics_hours.encrypted + excluded.encrypted,
    local_encrypted = statistics_hours.local_encrypted + excluded.local_encrypted`;

const setRoom = `INSERT INTO statistics_active_rooms (room_nid, plain_at, encrypted_at) VALUES (?, ?, ?)
  ON CONFLICT (room_nid) DO UPDATE SET
    plain_at = CASE WHEN excluded.plain_at > 0
      THEN excluded.plain_at ELSE statistics_active_rooms.plain_at END,
    encrypted_at = CASE WHEN excluded.encrypted_at > 0
      THEN excluded.encrypted_at ELSE statistics_active_rooms.encrypted_at END`;

const setPosition = `INSERT INTO statistics_position (id, position) VALUES (0, ?)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;

/**
 * Counts messages when they arrive on timelines. Writes the counts once a minute, together with the position of the last
 * counted event. After a crash it reads the later events from the database, so that each message is counted once.
 */
export class MessageCounter {
  readonly #deps: MessageCounterDeps;
  /** Counts that are not on disk yet, by the hour of arrival of the messages. */
  #pending = new Map<number, Counts>();
  /** When the last plain and the last encrypted message of a room arrived, or 0; by the nid of the room. */
  #rooms = new Map<number, [plainAt: number, encryptedAt: number]>();
  /** Position of the last counted fact; `undefined` when this position is on disk. */
  #countedUpTo: number | undefined;
  #timer: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(deps: MessageCounterDeps) {
    this.#deps = deps;
  }

  /** Counts the messages that arrived after the last write of an earlier process, and starts counting new ones. */
  async start(): Promise<void> {
    const { database, engine, streams } = this.#deps;
    const upTo = streams.current;
    engine.stream.subscribe(({ stored, onTimeline, position }) => {
      if (onTimeline) this.#count(stored);
      this.#setCountedUpTo(Math.max(position, upTo));
    });
    const stored = await database
      .reader<StatisticsTables>()
      .selectFrom('statistics_position')
      .select('position')
      .executeTakeFirst();
    for (let after = stored?.position ?? upTo; after < upTo; ) {
      const events = await engine.events.between(after, upTo, eventsPerRead);
      for (const event of events) this.#count(event);
      const last = events.at(-1)?.stream;
      after = events.length < eventsPerRead || last === undefined ? upTo : last;
    }
    this.#setCountedUpTo(Math.max(this.#countedUpTo ?? 0, upTo));
    await this.flush();
  }

  /** Writes the counts; resolves when they are on disk, or when the write has failed: then the next write includes them. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  #count({ event, roomNid }: StoredEvent): void {
    const isEncrypted = event.type === 'm.room.encrypted';
    if ((!isEncrypted && event.type !== 'm.room.message') || event.stateKey !== undefined) return;
    const now = this.#deps.clock.now();
    const hour = hourOf(now);
    const counts = this.#pending.get(hour) ?? { plain: 0, localPlain: 0, encrypted: 0, localEncrypted: 0 };
    this.#pending.set(hour, counts);
    const isLocal = serverOfUser(event.sender) === this.#deps.serverName;
    counts[isEncrypted ? 'encrypted' : 'plain'] += 1;
    if (isLocal) counts[isEncrypted ? 'localEncrypted' : 'localPlain'] += 1;
    if (!this.#deps.recordsRooms) return;
    const [plainAt, encryptedAt] = this.#rooms.get(roomNid) ?? [0, 0];
    this.#rooms.set(roomNid, isEncrypted ? [plainAt, now] : [now, encryptedAt]);
  }

  #setCountedUpTo(position: number): void {
    this.#countedUpTo = position;
    this.#timer ??= this.#deps.clock.setTimer(flushInterval, () => void this.flush());
  }

  async #write(): Promise<void> {
    const pending = this.#pending;
    const rooms = this.#rooms;
    const position = this.#countedUpTo;
    if (position === undefined) return;
    this.#pending = new Map();
    this.#rooms = new Map();
    this.#countedUpTo = undefined;
    try {
      await this.#deps.database.batch(statementsOf(pending, rooms, position));
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'Failed to write the numbers of messages');
      for (const [hour, counts] of pending) this.#pending.set(hour, sum(counts, this.#pending.get(hour)));
      for (const [room, times] of rooms) if (!this.#rooms.has(room)) this.#rooms.set(room, times);
      this.#countedUpTo ??= position;
    }
  }
}

function statementsOf(
  pending: ReadonlyMap<number, Counts>,
  rooms: ReadonlyMap<number, readonly [number, number]>,
  position: number,
): Statement[] {
  const hours = [...pending];
  const dayRows = hours.map(([hour, { plain, localPlain, encrypted, localEncrypted }]) => [
    dayOf(hour * 3_600_000),
    plain + encrypted,
    localPlain + localEncrypted,
  ]);
  const hourRows = hours.map(([hour, { plain, localPlain, encrypted, localEncrypted }]) => [
    hour,
    plain,
    localPlain,
    encrypted,
    localEncrypted,
  ]);
  return [
    ...(hours.length > 0
      ? [
          { sql: addToDay, rows: dayRows },
          { sql: addToHour, rows: hourRows },
        ]
      : []),
    ...(rooms.size > 0 ? [{ sql: setRoom, rows: [...rooms].map(([room, times]) => [room, ...times]) }] : []),
    { sql: setPosition, rows: [[position]] },
  ];
}

const sum = (a: Counts, b: Counts | undefined): Counts => ({
  plain: a.plain + (b?.plain ?? 0),
  localPlain: a.localPlain + (b?.localPlain ?? 0),
  encrypted: a.encrypted + (b?.encrypted ?? 0),
  localEncrypted: a.localEncrypted + (b?.localEncrypted ?? 0),
});
