import type { Database } from '../kernel/database/index.ts';
import type { RoomTables } from './tables.ts';

/** Counts the rooms that this server is or was in. Reads the whole table. */
export async function countRooms(database: Database): Promise<number> {
  const { count } = await database
    .scanner<RoomTables>()
    .selectFrom('rooms')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('state_group', 'is not', null)
    .executeTakeFirstOrThrow();
  return count;
}
