import type { AccountTables } from '../../accounts/index.ts';
import type { Directory, DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';
import { countRows } from '../paging/read-page.ts';
import type { BackgroundUpdate } from './background-update.ts';

type Tables = AccountTables & DirectoryTables & RoomTables;

export interface DirectoryUpdateDeps {
  readonly database: Database;
  readonly directory: Pick<Directory, 'stats' | 'userIndex' | 'remoteUsers'>;
}

/** Returns the updates of the directories, with the names that they have in the reference server. */
export function directoryUpdates(deps: DirectoryUpdateDeps): BackgroundUpdate[] {
  return [roomStatsUpdate(deps), userDirectoryUpdate(deps)];
}

/** Writes the table of rooms again, in the order of the room ids. */
function roomStatsUpdate({ database, directory }: DirectoryUpdateDeps): BackgroundUpdate {
  return {
    name: 'populate_stats_process_rooms',
    count: () => countRows(database.scanner<Tables>().selectFrom('rooms')),
    async next(after, size) {
      const known = await roomIdsAfter(database, 'rooms', after ?? '', size);
      // Rows of rooms that do not exist any more are included, so that rewrite() deletes them.
      const listed = await roomIdsAfter(database, 'room_stats', after ?? '', size);
      const roomIds = [...new Set([...known, ...listed])].sort(byCodePoints).slice(0, size);
      const last = roomIds.at(-1);
      if (last === undefined) return undefined;
      await directory.stats.rewrite(roomIds);
      return { last, rows: roomIds.length };
    },
  };
}

/** Writes the user directory again: first the local users, then the remote members of each room. */
function userDirectoryUpdate({ database, directory }: DirectoryUpdateDeps): BackgroundUpdate {
  const scanner = () => database.scanner<Tables>();
  const { userIndex, remoteUsers } = directory;
  return {
    name: 'regenerate_directory',
    count: async () =>
      (await countRows(scanner().selectFrom('users'))) + (await countRows(scanner().selectFrom('rooms'))),
    async next(after, size) {
      if (after === null || after.startsWith('@')) {
        const users = await scanner()
          .selectFrom('users')
          .select('user_id')
          .where('user_id', '>', after ?? '')
          .orderBy('user_id')
          .limit(size)
          .execute();
        for (const { user_id: userId } of users) await userIndex.rewrite(userId);
        const last = users.at(-1)?.user_id;
        if (last !== undefined) return { last, rows: users.length };
      }
      const roomIds = await roomIdsAfter(database, 'rooms', after?.startsWith('!') ? after : '', size);
      for (const roomId of roomIds) await remoteUsers.rewriteRoom(roomId);
      const last = roomIds.at(-1);
      return last === undefined ? undefined : { last, rows: roomIds.length };
    },
  };
}

/** Reads the next room ids of a table, in the order of their UTF-8 bytes. */
async function roomIdsAfter(
  database: Database,
  table: 'rooms' | 'room_stats',
  after: string,
  size: number,
): Promise<string[]> {
  const rows = await database
    .scanner<Tables>()
    .selectFrom(table)
    .select('room_id')
    .where('room_id', '>', after)
    .orderBy('room_id')
    .limit(size)
    .execute();
  return rows.map((row) => row.room_id);
}

const byCodePoints = (left: string, right: string) => Buffer.compare(Buffer.from(left), Buffer.from(right));
