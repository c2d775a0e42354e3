import type { Database } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';

/** Counts accounts by kind. Reads the whole table. */
export async function countUsers(
  database: Database,
): Promise<Readonly<Record<'user' | 'guest' | 'appservice' | 'deactivated', number>>> {
  const rows = await database
    .scanner<AccountTables>()
    .selectFrom('users')
    .select(({ fn, eb }) => [
      'is_guest',
      'is_deactivated',
      eb.case().when('appservice_id', 'is', null).then(0).else(1).end().as('isOfAppservice'),
      fn.countAll<number>().as('count'),
    ])
    .groupBy(['is_guest', 'is_deactivated', 'isOfAppservice'])
    .execute();
  const counts = { user: 0, guest: 0, appservice: 0, deactivated: 0 };
  for (const { is_guest, is_deactivated, isOfAppservice, count } of rows) {
    const kind = is_deactivated ? 'deactivated' : isOfAppservice ? 'appservice' : is_guest ? 'guest' : 'user';
    counts[kind] += count;
  }
  return counts;
}
