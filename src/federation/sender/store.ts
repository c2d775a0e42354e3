import type { Reader, Statement, Writer } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import type { SenderTables } from './tables.ts';

/** Maximum number of rows per statement. With five values per row, it is far below the limits of both databases. */
const maxRows = 2_000;

/** Stores EDUs. */
export async function insertOutgoing(
  writer: Writer<SenderTables>,
  rows: readonly SenderTables['federation_outbox'][],
): Promise<void> {
  for (let start = 0; start < rows.length; start += maxRows) {
    await writer
      .insertInto('federation_outbox')
      .values(rows.slice(start, start + maxRows))
      .execute();
  }
}

/** Reads the oldest EDUs for a server. */
export function readOutgoing(reader: Reader<SenderTables>, destination: string, limit: number) {
  return reader
    .selectFrom('federation_outbox')
    .select(['id', 'type', 'content'])
    .where('destination', '=', destination)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Deletes EDUs for a server by their ids. */
export async function deleteOutgoing(
  writer: Writer<SenderTables>,
  destination: string,
  ids: readonly number[],
): Promise<void> {
  await writer
    .deleteFrom('federation_outbox')
    .where('destination', '=', destination)
    .where('id', 'in', ids)
    .execute();
}

/** Deletes EDUs that were added before a time in milliseconds since the epoch. */
export async function deleteOutgoingBefore(writer: Writer<SenderTables>, addedBefore: number): Promise<void> {
  await writer.deleteFrom('federation_outbox').where('added_ts', '<', addedBefore).execute();
}

/** Returns the servers with more than `limit` EDUs. */
export async function readLongQueues(reader: Reader<SenderTables>, limit: number): Promise<string[]> {
  const rows = await reader
    .selectFrom('federation_outbox')
    .select('destination')
    .groupBy('destination')
    .having(({ fn }) => fn.countAll<number>(), '>', limit)
    .execute();
  return rows.map(({ destination }) => destination);
}

/** Deletes all but the newest `limit` EDUs for a server. */
export async function deleteOldestOutgoing(
  writer: Writer<SenderTables>,
  destination: string,
  limit: number,
): Promise<void> {
  const newestToDelete = await writer
    .selectFrom('federation_outbox')
    .select('id')
    .where('destination', '=', destination)
    .orderBy('id', 'desc')
    .offset(limit)
    .limit(1)
    .executeTakeFirst();
  if (!newestToDelete) return;
  await writer
    .deleteFrom('federation_outbox')
    .where('destination', '=', destination)
    .where('id', '<=', newestToDelete.id)
    .execute();
}

/**
 * Returns the servers with pending events or EDUs from the last run. The servers whose last missed
 * event is newest come first: they are the most likely to have been receiving events when this server stopped.
 */
export async function readUnfinished(
  reader: Reader<SenderTables>,
): Promise<{ readonly behind: string[]; readonly withEdus: string[] }> {
  const behind = await reader
    .selectFrom('destination_rooms')
    .select('destination')
    .groupBy('destination')
    .orderBy((by) => by.fn.max('stream'), 'desc')
    .execute();
  const withEdus = await reader.selectFrom('federation_outbox').select('destination').distinct().execute();
  return {
    behind: behind.map(({ destination }) => destination),
    withEdus: withEdus.map(({ destination }) => destination),
  };
}

/** Recorded progress of a room with events that a destination lacks. */
export type MissedRoom = Omit<SenderTables['destination_rooms'], 'destination'>;

/** Returns the rooms with events that a destination lacks, ordered by the stream position of the last missed event. */
export function readMissedRooms(
  reader: Reader<SenderTables>,
  destination: string,
  limit: number,
): Promise<MissedRoom[]> {
  return reader
    .selectFrom('destination_rooms')
    .select(['room_nid', 'event_nid', 'stream', 'arrived_stream'])
    .where('destination', '=', destination)
    .orderBy('stream')
    .limit(limit)
    .execute();
}

/** Returns the id of a room; `undefined` when it was deleted. */
export async function readRoomId(reader: Reader<RoomTables>, roomNid: number): Promise<string | undefined> {
  const row = await reader
    .selectFrom('rooms')
    .select('room_id')
    .where('room_nid', '=', roomNid)
    .executeTakeFirst();
  return row?.room_id;
}

/** Returns the stream position up to which each destination has received events; only positions above `after`. */
export async function readPositions(
  reader: Reader<SenderTables>,
  after: number,
): Promise<Map<string, number>> {
  const rows = await reader
    .selectFrom('destination_positions')
    .select(['destination', 'stream'])
    .where('stream', '>', after)
    .execute();
  return new Map(rows.map(({ destination, stream }) => [destination, stream]));
}

const sqlText = {
  arrived: 'delete from destination_rooms where destination = ? and room_nid = ? and stream <= ?',
  progress:
    'update destination_rooms set arrived_stream = ? where destination = ? and room_nid = ? and arrived_stream < ?',
  missed:
    'insert into destination_rooms (destination, room_nid, event_nid, stream, arrived_stream) values (?, ?, ?, ?, ?) on conflict (destination, room_nid) do update set event_nid = excluded.event_nid, stream = excluded.stream where destination_rooms.stream < excluded.stream',
  position:
    'insert into destination_positions (destination, stream, sent_ts) values (?, ?, ?) on conflict (destination) do update set stream = excluded.stream, sent_ts = excluded.sent_ts',
};

/** Rows of `DeliveryProgress`, in the order in which they are applied. */
export interface ProgressRows {
  /** Rows of `destination_rooms` to delete: all events of the rooms have arrived. */
  readonly arrived: [destination: string, roomNid: number, upTo: number][];
  /** Values that `arrived_stream` of the remaining rows is raised to. */
  readonly progress: [upTo: number, destination: string, roomNid: number, upTo: number][];
  /** Rows of `destination_rooms` to add or update: rooms with missed events. */
  readonly missed: [
    destination: string,
    roomNid: number,
    eventNid: number,
    stream: number,
    arrivedStream: number,
  ][];
  readonly position: [destination: string, stream: number, sentTs: number][];
}

/** Returns the statements that write the rows. */
export function progressStatements(rows: ProgressRows): Statement[] {
  return (['arrived', 'progress', 'missed', 'position'] as const)
    .map((kind): Statement => ({ sql: sqlText[kind], rows: rows[kind] }))
    .filter((statement) => statement.rows.length > 0);
}
