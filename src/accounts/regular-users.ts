import type { Database } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';

/**
 * Selects users who are not deactivated and were registered until a time, except guests and users of application
 * services.
 */
const regularUsers = (database: Database, registeredUntil: number) =>
  database
    .scanner<AccountTables>()
    .selectFrom('users')
    .where('is_deactivated', '=', 0)
    .where('is_guest', '=', 0)
    .where('appservice_id', 'is', null)
    .where('created_at', '<=', registeredUntil);

/**
 * Counts users who are not deactivated, except guests and users of application services.
 * @param registeredUntil milliseconds since the epoch; users who registered later are not counted
 */
export async function countRegularUsers(database: Database, registeredUntil: number): Promise<number> {
  const { count } = await regularUsers(database, registeredUntil)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Reads the sorted ids of users who are not deactivated, except guests and users of application services.
 * @param after the last id of the previous page; empty for the first page
 * @param registeredUntil milliseconds since the epoch; users who registered later are left out
 */
export async function readRegularUsers(
  database: Database,
  { after, registeredUntil, limit }: { after: string; registeredUntil: number; limit: number },
): Promise<string[]> {
  const rows = await regularUsers(database, registeredUntil)
    .select('user_id')
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(limit)
    .execute();
  return rows.map(({ user_id: userId }) => userId);
}
