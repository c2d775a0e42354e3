import type { LeaveCheck } from '../rooms/index.ts';
import { type NoticesUser, noticeRoomLeaveCheck, noticesUser } from '../server-notices/index.ts';
import type { Kernel } from './kernel.ts';

/** Returns the user who sends server notices; `undefined` when notices are disabled. */
export function noticesUserOf({ configuration, serverName }: Kernel): NoticesUser | undefined {
  const { server_notices: options } = configuration.serverNotices;
  return options === null ? undefined : noticesUser(options, serverName);
}

/**
 * Returns the check that does not let users leave their notice rooms; `undefined` when notices are disabled.
 */
export const noticeLeaveCheck = (kernel: Kernel): LeaveCheck | undefined =>
  noticesUserOf(kernel) && noticeRoomLeaveCheck(kernel.database);
