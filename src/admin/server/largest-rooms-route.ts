import { sql } from 'kysely';
import { Type } from 'typebox';
import type { Database } from '../../kernel/database/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/** Maximum number of rooms in the response. */
const maxRooms = 10;

/**
 * Lists the rooms whose events take the most bytes. Reads all events without blocking other requests; concurrent requests
 * share one reading.
 */
export function largestRoomsRoute(database: Database): Route {
  const reading = new LoadOnce<'', LargestRoom[]>();
  return route(
    {
      operationId: 'getLargestRooms',
      method: 'GET',
      path: '/_server/admin/v1/statistics/database/rooms',
      auth: 'admin',
      response: Type.Object({
        rooms: Type.Array(Type.Object({ room_id: Type.String(), estimated_size: Type.Integer() })),
      }),
    },
    async () => ({ rooms: await reading.run('', () => readLargestRooms(database)) }),
  );
}

interface LargestRoom {
  readonly room_id: string;
  /** Bytes of all events. */
  readonly estimated_size: number;
}

async function readLargestRooms(database: Database): Promise<LargestRoom[]> {
  const rows = await database
    .scanner<RoomTables>()
    .selectFrom('events as e')
    .innerJoin('rooms as r', 'r.room_nid', 'e.room_nid')
    .select(['r.room_id', sql<number | string>`cast(sum(octet_length(e.json)) as bigint)`.as('size')])
    .groupBy('r.room_id')
    .orderBy('size', 'desc')
    .orderBy('r.room_id')
    .limit(maxRooms)
    .execute();
  return rows.map((row) => ({ room_id: row.room_id, estimated_size: Number(row.size) }));
}
