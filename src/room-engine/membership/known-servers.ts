import type { Database } from '../../kernel/database/index.ts';
import { serverOfUser } from '../../protocol/index.ts';
import type { RoomTables } from '../tables.ts';

/** Maximum number of memberships that one query reads. */
const pageSize = 5_000;

/** Returns the servers with users in the rooms of local users, including this server. Reads all memberships. */
export async function knownServers(database: Database, serverName: string): Promise<Set<string>> {
  const rooms = new Set<number>();
  for await (const { userId, roomNid } of joinedMemberships(database)) {
    if (serverOfUser(userId) === serverName) rooms.add(roomNid);
  }
  const servers = new Set<string>();
  for await (const { userId, roomNid } of joinedMemberships(database)) {
    if (rooms.has(roomNid)) servers.add(serverOfUser(userId));
  }
  return servers;
}

/** Yields the user and the room of each membership `join`. */
async function* joinedMemberships(database: Database) {
  const scanner = database.scanner<RoomTables>();
  for (let after = { user_id: '', room_nid: 0 }; ; ) {
    const rows = await scanner
      .selectFrom('memberships')
      .select(['user_id', 'room_nid', 'membership'])
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('user_id', 'room_nid'), '>', tuple(after.user_id, after.room_nid)),
      )
      .orderBy('user_id')
      .orderBy('room_nid')
      .limit(pageSize)
      .execute();
    for (const { user_id: userId, room_nid: roomNid, membership } of rows) {
      if (membership === 'join') yield { userId, roomNid };
    }
    const last = rows.at(-1);
    if (!last || rows.length < pageSize) return;
    after = last;
  }
}
