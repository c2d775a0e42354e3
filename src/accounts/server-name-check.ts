import type { Database } from '../kernel/database/index.ts';
import { StartFailure } from '../kernel/start-failure.ts';
import type { AccountTables } from './tables.ts';

/**
 * Refuses a database of a server with another name: its users and rooms would be strangers here, and what other servers
 * know of it could not be kept.
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
    `server_name is ${serverName}, and the database is that of ${found}: the name of a server can not be changed`,
  );
}
