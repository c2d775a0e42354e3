import { type Kysely, sql } from 'kysely';
import type { Database, Migration, Writer } from '../../kernel/database/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomHead, RoomTables } from '../../room-engine/index.ts';
import type { DirectoryTables } from '../tables.ts';

/** Number of rows that one statement reads, inserts or deletes. */
const rowsAtOnce = 500;

/**
 * How the rows of a room's servers must change. `added`: servers with joined users, but without a row. `removed`:
 * servers with a row, but without joined users.
 */
export interface ServerChanges {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Compares the servers with joined users in a room with the rows of the room.
 * @param changed the servers whose members have changed since the rows were written; absent: the members of any server
 * may have changed
 */
export async function serverChanges(
  database: Database,
  head: RoomHead,
  changed?: ReadonlySet<string>,
): Promise<ServerChanges> {
  if (changed?.size === 0) return { added: [], removed: [] };
  const servers = new Set<string>();
  for (const [userId, membership] of head.members) {
    if (membership !== 'join') continue;
    const server = serverOfUser(userId);
    if (changed?.has(server) !== false) servers.add(server);
  }
  let query = database
    .scanner<DirectoryTables>()
    .selectFrom('room_servers')
    .select('server_name')
    .where('room_id', '=', head.roomId);
  if (changed) query = query.where('server_name', 'in', [...changed]);
  const rows = await query.execute();
  const written = new Set(rows.map((row) => row.server_name));
  return { added: [...servers.difference(written)], removed: [...written.difference(servers)] };
}

export async function writeServerChanges(
  writer: Writer<DirectoryTables>,
  roomId: string,
  { added, removed }: ServerChanges,
): Promise<void> {
  for (let start = 0; start < added.length; start += rowsAtOnce) {
    const rows = added
      .slice(start, start + rowsAtOnce)
      .map((name) => ({ server_name: name, room_id: roomId }));
    await writer
      .insertInto('room_servers')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  for (let start = 0; start < removed.length; start += rowsAtOnce) {
    await writer
      .deleteFrom('room_servers')
      .where('room_id', '=', roomId)
      .where('server_name', 'in', removed.slice(start, start + rowsAtOnce))
      .execute();
  }
}

type Tables = DirectoryTables & RoomTables;

/**
 * Adds the servers with joined users in each room. Must be applied after the migrations of rooms, because it reads
 * their members.
 */
export const roomServersMigration: Migration = {
  name: 'directory/0004-room-servers',
  async up({ db, clustered }) {
    await clustered(
      db.schema
        .createTable('room_servers')
        .addColumn('server_name', 'text', (column) => column.notNull())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('room_servers_key', ['server_name', 'room_id']),
    ).execute();
    await addServers(db as unknown as Kysely<Tables>);
    await db.schema.createIndex('room_servers_by_room').on('room_servers').column('room_id').execute();
  },
};

/** Adds the servers of all joined users, some users at a time. */
async function addServers(db: Kysely<Tables>): Promise<void> {
  for (let after = { userId: '', roomNid: 0 }; ; ) {
    const rows = await db
      .selectFrom('memberships as m')
      .innerJoin('rooms as r', 'r.room_nid', 'm.room_nid')
      .select(['m.user_id', 'm.room_nid', 'm.membership', 'r.room_id'])
      .where(sql<boolean>`(m.user_id, m.room_nid) > (${after.userId}, ${after.roomNid})`)
      .orderBy('m.user_id')
      .orderBy('m.room_nid')
      .limit(rowsAtOnce)
      .execute();
    const last = rows.at(-1);
    if (last === undefined) return;
    const joined = rows.filter(({ membership }) => membership === 'join');
    const servers = joined.map((row) => ({ server_name: serverOfUser(row.user_id), room_id: row.room_id }));
    if (servers.length > 0)
      await db
        .insertInto('room_servers')
        .values(servers)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    after = { userId: last.user_id, roomNid: last.room_nid };
  }
}
