import type { Database, DatabaseKind } from '../kernel/database/index.ts';
import type { RoomTables } from './tables.ts';

/** The space that a room takes in the database. */
export interface RoomSize {
  readonly roomId: string;
  /** Number of events. */
  readonly events: number;
  /** Size of the JSON of the events, in bytes. */
  readonly bytes: number;
  /** Number of state groups. */
  readonly stateGroups: number;
}

/**
 * Returns the rooms with the most bytes in events, largest first.
 * @param state the database of state groups
 * @param kind the kind of the database `main`
 */
export async function largestRooms(
  { main, state }: { readonly main: Database; readonly state: Database },
  kind: DatabaseKind,
  limit: number,
): Promise<RoomSize[]> {
  const rows = await main
    .scanner<RoomTables>()
    .selectFrom('events')
    .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
    .select(['rooms.room_nid', 'rooms.room_id'])
    .select(({ fn, cast, ref }) => [
      fn.countAll<number>().as('events'),
      // SQLite counts the length of a text in characters, so the text is cast to bytes.
      fn
        .sum<number>(
          kind === 'sqlite'
            ? fn<number>('length', [cast(ref('events.json'), 'bytea')])
            : fn<number>('octet_length', ['events.json']),
        )
        .as('bytes'),
    ])
    .groupBy(['rooms.room_nid', 'rooms.room_id'])
    .orderBy('bytes', 'desc')
    .limit(limit)
    .execute();
  if (rows.length === 0) return [];
  const groups = await state
    .scanner<RoomTables>()
    .selectFrom('state_groups')
    .select(['room_nid', ({ fn }) => fn.countAll<number>().as('count')])
    .where(
      'room_nid',
      'in',
      rows.map(({ room_nid }) => room_nid),
    )
    .groupBy('room_nid')
    .execute();
  const counts = new Map(groups.map(({ room_nid, count }) => [room_nid, Number(count)]));
  return rows.map((row) => ({
    roomId: row.room_id,
    events: Number(row.events),
    bytes: Number(row.bytes),
    stateGroups: counts.get(row.room_nid) ?? 0,
  }));
}
