import type { Database } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';

/** Numbers of accounts. Each account counts once: a deactivated account as `deactivated` only. */
type UserCounts = Readonly<Record<'user' | 'guest' | 'appservice' | 'deactivated', number>>;

/** Counts accounts by kind. Reads the whole table. */
export const countUsers = (database: Database): Promise<UserCounts> => countNewUsers(database, 0);

/**
 * Counts the accounts that were created since a time, by kind. Reads the whole table.
 * @param since milliseconds since the epoch
 */
export async function countNewUsers(database: Database, since: number): Promise<UserCounts> {
  const rows = await database
    .scanner<AccountTables>()
    .selectFrom('users')
    .select(({ fn, eb }) => [
      'is_guest',
      'is_deactivated',
      eb.case().when('appservice_id', 'is', null).then(0).else(1).end().as('isOfAppservice'),
      fn.countAll<number>().as('count'),
    ])
    .where('created_at', '>=', since)
    .groupBy(['is_guest', 'is_deactivated', 'isOfAppservice'])
    .execute();
  const counts = { user: 0, guest: 0, appservice: 0, deactivated: 0 };
  for (const { is_guest, is_deactivated, isOfAppservice, count } of rows) {
    const kind = is_deactivated ? 'deactivated' : isOfAppservice ? 'appservice' : is_guest ? 'guest' : 'user';
    counts[kind] += count;
  }
  return counts;
}
