import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { BlockedRooms } from '../../rooms/index.ts';
import { flag } from '../response-fields.ts';
import { checkRoomId } from './known-rooms.ts';

const path = '/_server/admin/v1/rooms/:roomId/block';

/**
 * Returns the routes that block and unblock rooms, and show whether a room is blocked. Local users cannot enter a blocked
 * room. Unknown rooms can be blocked, too.
 */
export function blockRoutes(blocked: BlockedRooms): Route[] {
  return [
    route(
      {
        operationId: 'getRoomBlock',
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
      {
        operationId: 'setRoomBlock',
        method: 'PUT',
        path,
        auth: 'admin',
        body: Type.Object({ block: Type.Boolean() }),
        response: Type.Object({ block: flag }),
      },
      async ({ params: { roomId }, body: { block }, requester }) => {
        checkRoomId(roomId);
        if (block) await blocked.block(roomId, requester.userId);
        else await blocked.unblock(roomId);
        return { block };
      },
    ),
  ];
}
