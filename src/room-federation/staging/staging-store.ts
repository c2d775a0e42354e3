import type { Database, Reader } from '../../kernel/database/index.ts';
import type { IncomingTables } from './tables.ts';

type Row = IncomingTables['incoming_events'];

/** Maximum number of events that one transaction deletes. */
const deletedAtOnce = 500;

/** Inserts staged events; resolves when they are on disk. Existing rows stay unchanged. */
export function insertStaged(database: Database, rows: readonly Row[]): Promise<void> {
  const sql =
    'insert into incoming_events (id, event_id, room_id, origin, received_ts, attempts, retry_ts, json) values (?, ?, ?, ?, ?, ?, ?, ?) on conflict (event_id) do nothing';
  return database.batch([
    {
      sql,
      rows: rows.map((row) => [
        row.id,
        row.event_id,
        row.room_id,
        row.origin,
        row.received_ts,
        row.attempts,
        row.retry_ts,
        row.json,
      ]),
    },
  ]);
}

/** Whether any event is staged. Callers check this before `readStaged`, which may start a thread. */
export async function hasStaged(reader: Reader<IncomingTables>): Promise<boolean> {
  const row = await reader.selectFrom('incoming_events').select('id').limit(1).executeTakeFirst();
  return row !== undefined;
}

/** Reads all columns except the JSON of the events, in order of arrival. */
export function readStaged(reader: Reader<IncomingTables>): Promise<Omit<Row, 'json'>[]> {
  return reader
    .selectFrom('incoming_events')
    .select(['id', 'event_id', 'room_id', 'origin', 'received_ts', 'attempts', 'retry_ts'])
    .orderBy('id')
    .execute();
}

/** Returns the JSON of a staged event; `undefined` when it is no longer staged. */
export async function readStagedJson(
  reader: Reader<IncomingTables>,
  eventId: string,
): Promise<string | undefined> {
  const row = await reader
    .selectFrom('incoming_events')
    .select('json')
    .where('event_id', '=', eventId)
    .executeTakeFirst();
  return row?.json;
}

/** Deletes staged events. */
export async function deleteStaged(database: Database, eventIds: readonly string[]): Promise<void> {
  const sql = 'delete from incoming_events where event_id = ?';
  for (let start = 0; start < eventIds.length; start += deletedAtOnce) {
    await database.batch([{ sql, rows: eventIds.slice(start, start + deletedAtOnce).map((id) => [id]) }]);
  }
}

/** Stores the number of failed attempts, and the time of the next attempt in milliseconds since the epoch. */
export function postponeStaged(
  database: Database,
  eventId: string,
  attempts: number,
  retryTs: number,
): Promise<void> {
  const sql = 'update incoming_events set attempts = ?, retry_ts = ? where event_id = ?';
  return database.batch([{ sql, rows: [[attempts, retryTs, eventId]] }]);
}
