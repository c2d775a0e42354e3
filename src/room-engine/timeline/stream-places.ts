import type { Reader } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of ids in one query. */
const maxIds = 500;

/** A place in a room's history: after the event with this depth and position; no such event needs to exist. */
export interface HistoryPlace {
  readonly depth: number;
  readonly stream: number;
}

/**
 * Returns the place in a room's history that corresponds to a position on the stream: after the newest event up to
 * that position.
 */
export async function readPlaceAt(
  reader: Reader<RoomTables>,
  roomNid: number,
  position: number,
): Promise<HistoryPlace> {
  const row = await reader
    .selectFrom('events')
    .select(['depth', 'stream'])
    .where('room_nid', '=', roomNid)
    .where('stream', '<=', position)
    .orderBy('stream', 'desc')
    .limit(1)
    .executeTakeFirst();
  return { depth: row?.depth ?? 0, stream: row?.stream ?? 0 };
}

/** Returns which of these rooms have new timeline events after a position on the stream, as nids. */
export async function readChangedRooms(
  reader: Reader<RoomTables>,
  roomNids: readonly number[],
  after: number,
): Promise<Set<number>> {
  const changed = new Set<number>();
  for (let start = 0; start < roomNids.length; start += maxIds) {
    const rows = await reader
      .selectFrom('events')
      .select('room_nid')
      .distinct()
      .where('room_nid', 'in', roomNids.slice(start, start + maxIds))
      .where('stream', '>', after)
      .execute();
    for (const row of rows) changed.add(row.room_nid);
  }
  return changed;
}

/** Returns the position of the newest timeline event of each room, by room nid. */
export async function readNewest(
  reader: Reader<RoomTables>,
  roomNids: readonly number[],
): Promise<Map<number, number>> {
  const newest = new Map<number, number>();
  for (let start = 0; start < roomNids.length; start += maxIds) {
    const rows = await reader
      .selectFrom('rooms')
      .select((where) => [
        'rooms.room_nid',
        where
          .selectFrom('events')
          .select('events.stream')
          .whereRef('events.room_nid', '=', 'rooms.room_nid')
          .where('events.stream', 'is not', null)
          .orderBy('events.stream', 'desc')
          .limit(1)
          .as('stream'),
      ])
      .where('rooms.room_nid', 'in', roomNids.slice(start, start + maxIds))
      .execute();
    for (const { room_nid, stream } of rows) if (stream !== null) newest.set(room_nid, stream);
  }
  return newest;
}

/** Returns the ids of the rooms with events that were stored, placed or backfilled in `(after, upTo]` of the stream. */
export async function readRoomsBetween(
  reader: Reader<RoomTables>,
  after: number,
  upTo: number,
): Promise<string[]> {
  const [placedOnArrival, placedLater] = await Promise.all([
    reader
      .selectFrom('events')
      .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
      .select('rooms.room_id')
      .distinct()
      .where('events.nid', '>', after)
      .where('events.nid', '<=', upTo)
      .execute(),
    reader
      .selectFrom('event_places')
      .innerJoin('events', 'events.nid', 'event_places.nid')
      .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
      .select('rooms.room_id')
      .distinct()
      .where('event_places.position', '>', after)
      .where('event_places.position', '<=', upTo)
      .execute(),
  ]);
  return [...new Set([...placedOnArrival, ...placedLater].map((row) => row.room_id))];
}
