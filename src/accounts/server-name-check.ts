import type { Database } from '../kernel/database/index.ts';
import { StartFailure } from '../kernel/start-failure.ts';
import type { AccountTables } from './tables.ts';

/**
 * Refuses a database whose users belong to another server name: this server would treat them as remote users.
 * @throws StartFailure
 */
export async function requireSameServerName(database: Database, serverName: string): Promise<void> {
  const user = await database
    .reader<AccountTables>()
    .selectFrom('users')
    .select('user_id')
    .limit(1)
    .executeTakeFirst();
  if (user === undefined) return;
  const found = user.user_id.slice(user.user_id.indexOf(':') + 1);
  if (found === serverName) return;
  throw new StartFailure(
    `server_name is ${serverName}, but the users in the database belong to ${found}: the server name cannot be changed`,
  );
}
