import { Type } from 'typebox';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import type { RoomReader, UserRoom } from '../../room-engine/index.ts';
import type { PageCursors, PageStart } from '../paging/page-cursors.ts';
import { pageFrom, pageParameters } from '../paging/page-query.ts';
import { integer, nullableInteger, nullableText, text } from '../response-fields.ts';
import { requireUserId } from './local-user.ts';

export interface UserRoomsDeps {
  readonly database: Database;
  readonly engine: Pick<RoomReader, 'userRooms'>;
  readonly cursors: PageCursors;
  /** Resolves when the table of rooms is up to date. */
  readonly caughtUp: () => Promise<void>;
}

/**
 * Lists the rooms in which a local or remote user has a membership, in the order of the room ids. Each room has its
 * name, except rooms that this server is not in.
 */
export function userRoomsRoute({ database, engine, cursors, caughtUp }: UserRoomsDeps): Route {
  return route(
    {
      operationId: 'listUserRooms',
      method: 'GET',
      path: '/_server/admin/v1/users/:userId/rooms',
      auth: 'admin',
      query: Type.Object(pageParameters),
      response: Type.Object({
        rooms: Type.Array(
          Type.Object({
            room_id: text,
            membership: text,
            name: nullableText,
            canonical_alias: nullableText,
            joined_members: nullableInteger,
          }),
        ),
        total: integer,
        next_token: Type.Optional(integer),
      }),
    },
    async ({ params: { userId }, query, requester }) => {
      requireUserId(userId);
      const rooms = await engine.userRooms.of(userId);
      const listed = { administrator: requester.userId, list: JSON.stringify(['rooms of a user', userId]) };
      const { rows, next } = await pageFrom(cursors, listed, query, async (start, limit) =>
        pageOfRooms([...rooms.values()], start, limit),
      );
      await caughtUp();
      const namesByRoom = await readNames(
        database,
        rows.map(({ roomId }) => roomId),
      );
      return {
        rooms: rows.map(({ roomId, membership }) => ({
          room_id: roomId,
          membership,
          name: namesByRoom.get(roomId)?.name ?? null,
          canonical_alias: namesByRoom.get(roomId)?.canonical_alias ?? null,
          joined_members: namesByRoom.get(roomId)?.joined_members ?? null,
        })),
        total: rooms.size,
        ...(next !== undefined && { next_token: next }),
      };
    },
  );
}

function pageOfRooms(rooms: readonly UserRoom[], start: PageStart, limit: number) {
  const sorted = rooms.toSorted((a, b) => (a.roomId < b.roomId ? -1 : 1));
  const beyond =
    'offset' in start
      ? sorted.slice(start.offset)
      : sorted.filter(({ roomId }) => roomId > String(start.after.key));
  const rows = beyond.slice(0, limit);
  const last = beyond.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last && { value: last.roomId, key: last.roomId } };
}

async function readNames(database: Database, roomIds: readonly string[]) {
  if (roomIds.length === 0) return new Map<string, never>();
  const rows = await database
    .scanner<DirectoryTables>()
    .selectFrom('room_stats')
    .select(['room_id', 'name', 'canonical_alias', 'joined_members'])
    .where('room_id', 'in', roomIds)
    .execute();
  return new Map(rows.map((row) => [row.room_id, row]));
}
