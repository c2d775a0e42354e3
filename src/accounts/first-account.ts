import { type AnyWriter, type Database, writerFor } from '../kernel/database/index.ts';
import type { AccountTables } from './tables.ts';

/** Whether the account of a user is the only one. Guests and users of application services do not count. */
export async function isFirstAccount(writer: AnyWriter, userId: string): Promise<boolean> {
  const other = await writerFor<AccountTables>(writer)
    .selectFrom('users')
    .select('user_id')
    .where('is_guest', '=', 0)
    .where('appservice_id', 'is', null)
    .where('user_id', '!=', userId)
    .limit(1)
    .executeTakeFirst();
  return other === undefined;
}

/** Whether any account exists. Guests and users of application services do not count. */
export async function hasAccounts(database: Database): Promise<boolean> {
  const account = await database
    .reader<AccountTables>()
    .selectFrom('users')
    .select('user_id')
    .where('is_guest', '=', 0)
    .where('appservice_id', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return account !== undefined;
}
