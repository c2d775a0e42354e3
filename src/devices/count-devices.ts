import type { Database } from '../kernel/database/index.ts';
import type { DeviceTables } from './tables.ts';

/** Counts the devices of local users. Reads the whole table. */
export async function countDevices(database: Database): Promise<number> {
  const { count } = await database
    .scanner<DeviceTables>()
    .selectFrom('devices')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}
