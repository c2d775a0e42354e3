import type { Database, Reader } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/** A missing event that the timeline refers to and that is backfilled in the background. */
export interface MissedEvent {
  readonly eventId: string;
  /** The nid of an event that names this event in `prev_events`. */
  readonly referencedBy: number | undefined;
  /** Number of failed attempts. */
  readonly attempts: number;
  /** Time of the next request, in milliseconds since the epoch. */
  readonly retryTs: number;
}

/** Whether any event is missing. Callers check this before `readRoomsWithMissed`, which may start a thread. */
export async function hasMissed(reader: Reader<RoomTables>): Promise<boolean> {
  const row = await reader
    .selectFrom('backward_extremities')
    .select('room_nid')
    .where('backfills_left', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the ids of rooms with missing events. */
export async function readRoomsWithMissed(reader: Reader<RoomTables>): Promise<string[]> {
  const rows = await reader
    .selectFrom('backward_extremities as gap')
    .innerJoin('rooms', 'rooms.room_nid', 'gap.room_nid')
    .select('rooms.room_id')
    .distinct()
    .where('gap.backfills_left', 'is not', null)
    .execute();
  return rows.map((row) => row.room_id);
}

/** Returns the missing events of a room, ordered by when they may be requested. */
export async function readMissed(
  reader: Reader<RoomTables>,
  roomNid: number,
  { limit, offset = 0 }: { readonly limit: number; readonly offset?: number },
): Promise<MissedEvent[]> {
  const rows = await reader
    .selectFrom('backward_extremities')
    .select(['event_id', 'referenced_by', 'attempts', 'retry_ts'])
    .where('room_nid', '=', roomNid)
    .where('backfills_left', 'is not', null)
    .orderBy('retry_ts')
    .orderBy('event_id')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map((row) => ({
    eventId: row.event_id,
    referencedBy: row.referenced_by ?? undefined,
    attempts: row.attempts,
    retryTs: row.retry_ts,
  }));
}

/** Stores the number of attempts, and the time of the next attempt, of missing events. */
export function postponeMissed(
  database: Database,
  roomNid: number,
  events: readonly Pick<MissedEvent, 'eventId' | 'attempts' | 'retryTs'>[],
): Promise<void> {
  const sql =
    'update backward_extremities set attempts = ?, retry_ts = ? where room_nid = ? and event_id = ?';
  const rows = events.map(({ eventId, attempts, retryTs }) => [attempts, retryTs, roomNid, eventId]);
  return database.batch([{ sql, rows }]);
}

/** Ends background backfill of these events: they are fetched only when a client reads this part of the history. */
export function fetchOnlyOnRead(
  database: Database,
  roomNid: number,
  eventIds: readonly string[],
): Promise<void> {
  const sql = 'update backward_extremities set backfills_left = null where room_nid = ? and event_id = ?';
  return database.batch([{ sql, rows: eventIds.map((eventId) => [roomNid, eventId]) }]);
}
