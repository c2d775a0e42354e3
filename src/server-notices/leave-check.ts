import type { Database } from '../kernel/database/index.ts';
import { MatrixError } from '../protocol/index.ts';
import type { LeaveCheck } from '../rooms/index.ts';
import { readNoticeRoom } from './store.ts';
import type { ServerNoticeTables } from './tables.ts';

/**
 * Keeps users from leaving their notice room and from rejecting its invite.
 * Source: interface document, "server_notices"; client-server API, "Server Notices".
 * @returns a check that throws MatrixError 403 M_CANNOT_LEAVE_SERVER_NOTICE_ROOM
 */
export function noticeRoomLeaveCheck(database: Database): LeaveCheck {
  return async (userId, roomId, { heads }) => {
    if ((await readNoticeRoom(database.reader<ServerNoticeTables>(), userId)) !== roomId) return;
    const membership = (await heads.get(roomId))?.membership(userId);
    if (membership !== 'invite' && membership !== 'join') return;
    const action = membership === 'invite' ? 'reject this invite' : 'leave this room';
    throw new MatrixError(
      403,
      'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM',
      `You cannot ${action}: this room is for notices of the server`,
    );
  };
}
