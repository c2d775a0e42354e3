import type { Database, Reader } from '../kernel/database/index.ts';
import type { PresenceState, PresenceStatus } from './presence-status.ts';
import type { PresenceTables } from './tables.ts';

/** Maximum number of users in one query. */
const usersPerQuery = 500;

/** Reads the stored presence of these users; users without a row are absent. */
export async function readPresence(
  reader: Reader<PresenceTables>,
  userIds: readonly string[],
): Promise<Map<string, PresenceStatus>> {
  const statuses = new Map<string, PresenceStatus>();
  for (let start = 0; start < userIds.length; start += usersPerQuery) {
    const rows = await reader
      .selectFrom('presence')
      .selectAll()
      .where('user_id', 'in', userIds.slice(start, start + usersPerQuery))
      .execute();
    for (const row of rows) statuses.set(row.user_id, toStatus(row));
  }
  return statuses;
}

/** Reads the stored presence of all users who are not offline, by user id. */
export async function readNotOffline(reader: Reader<PresenceTables>): Promise<Map<string, PresenceStatus>> {
  const rows = await reader.selectFrom('presence').selectAll().where('presence', '<>', 'offline').execute();
  return new Map(rows.map((row) => [row.user_id, toStatus(row)]));
}

/** Writes the presence of many users in one batch. */
export async function writePresence(
  database: Database,
  statuses: ReadonlyMap<string, PresenceStatus>,
): Promise<void> {
  if (statuses.size === 0) return;
  const rows = [...statuses].map(([userId, { presence, statusMsg, lastActive }]) => [
    userId,
    presence,
    statusMsg ?? null,
    lastActive,
  ]);
  const sql = `insert into presence (user_id, presence, status_msg, last_active) values (?, ?, ?, ?)
    on conflict (user_id) do update set presence = excluded.presence, status_msg = excluded.status_msg,
    last_active = excluded.last_active`;
  await database.batch([{ sql, rows }]);
}

const toStatus = (row: PresenceTables['presence']): PresenceStatus => ({
  presence: row.presence as PresenceState,
  statusMsg: row.status_msg ?? undefined,
  lastActive: row.last_active,
  currentlyActive: false,
});
