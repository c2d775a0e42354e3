import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { BlockedRooms } from '../../rooms/index.ts';
import { checkRoomId } from './known-rooms.ts';

const path = '/_server/admin/v1/rooms/:roomId/block';

/** Shows, blocks and unblocks rooms, which local users then cannot enter. Unknown rooms can be blocked, too. */
export function blockRoutes(blocked: BlockedRooms): Route[] {
  return [
    route(
      {
        method: 'GET',
        path,
        auth: 'admin',
        response: Type.Object({ block: Type.Boolean(), user_id: Type.Optional(Type.String()) }),
      },
      ({ params: { roomId } }) => {
        checkRoomId(roomId);
        const userId = blocked.blockedBy(roomId);
        return userId === undefined ? { block: false } : { block: true, user_id: userId };
      },
    ),
    route(
      { method: 'PUT', path, auth: 'admin', body: Type.Object({ block: Type.Boolean() }) },
      async ({ params: { roomId }, body: { block }, requester }) => {
        checkRoomId(roomId);
        if (block) await blocked.block(roomId, requester.userId);
        else await blocked.unblock(roomId);
        return { block };
      },
    ),
  ];
}
