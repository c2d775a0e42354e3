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

/** Counts the users who were active since a time. @param since milliseconds since the epoch */
export async function countActiveUsers(database: Database, since: number): Promise<number> {
  const { count } = await database
    .scanner<DeviceTables>()
    .selectFrom('user_ips')
    .select(({ fn }) => fn.count<number>('user_id').distinct().as('count'))
    .where('last_seen_at', '>=', since)
    .executeTakeFirstOrThrow();
  return Number(count);
}
