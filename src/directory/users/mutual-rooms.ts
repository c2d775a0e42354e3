import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isUserId } from '../../protocol/index.ts';
import type { RoomReader } from '../../room-engine/index.ts';

/** Maximum number of rooms per page. */
const pageSize = 100;

interface Page {
  readonly joined: readonly string[];
  readonly count: number;
  readonly next: string | undefined;
}

/**
 * Returns the rooms that two users share, sorted by id.
 * @throws MatrixError M_INVALID_PARAM for the user's own id, an invalid user id, and an invalid token
 */
async function mutualRooms(
  engine: RoomReader,
  userId: string,
  otherUserId: string,
  from: string | undefined,
): Promise<Page> {
  if (!isUserId(otherUserId)) throw invalidParam('The user ID provided was invalid');
  if (otherUserId === userId) throw invalidParam('You share all of your rooms with yourself');
  const after = from === undefined ? '' : decodeFrom(from);
  const rooms = (await engine.userRooms.shared(userId, otherUserId)).sort();
  const laterRooms = rooms.filter((roomId) => roomId > after);
  const joined = laterRooms.slice(0, pageSize);
  const last = joined.at(-1);
  const next = laterRooms.length > pageSize && last ? Buffer.from(last).toString('base64url') : undefined;
  return { joined, count: rooms.length, next };
}

function decodeFrom(token: string): string {
  const roomId = Buffer.from(token, 'base64url').toString();
  if (!roomId.startsWith('!')) throw invalidParam('Invalid pagination token');
  return roomId;
}

/**
 * Returns the route that lists the rooms that a user shares with another user.
 * Source: client-server API, "Mutual rooms"; with the unstable path.
 */
export function mutualRoomRoutes(engine: RoomReader): Route[] {
  const text = Type.Optional(Type.String());
  return [
    route(
      {
        operationId: 'getMutualRooms',
        method: 'GET',
        path: '/_proto/client/v1/mutual_rooms',
        auth: 'user',
        query: Type.Object({ user_id: Type.String(), from: text }),
      },
      async ({ requester, query }) => {
        const { next, ...page } = await mutualRooms(engine, requester.userId, query.user_id, query.from);
        return { ...page, ...(next === undefined ? undefined : { next_batch: next }) };
      },
    ),
    route(
      {
        method: 'GET',
        path: '/_proto/client/unstable/uk.half-shot.msc2666/user/mutual_rooms',
        auth: 'user',
        query: Type.Object({ user_id: Type.String(), batch_token: text }),
      },
      async ({ requester, query }) => {
        const { next, ...page } = await mutualRooms(
          engine,
          requester.userId,
          query.user_id,
          query.batch_token,
        );
        return { ...page, ...(next === undefined ? undefined : { next_batch_token: next }) };
      },
    ),
  ];
}
