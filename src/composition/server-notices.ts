import type { Rooms } from '../rooms/index.ts';
import { NoticeRooms, ServerNotices, serverNoticeRoutes } from '../server-notices/index.ts';
import type { Kernel } from './kernel.ts';
import { noticesUserOf } from './notices-user.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens server notices if the options enable them; to be called before jobs are started. */
export async function startServerNotices(
  kernel: Kernel,
  users: Users,
  rooms: Rooms,
  opened: OpenedSlices,
): Promise<void> {
  const { accounts } = users.accounts;
  const sending = noticeSending(kernel, users, rooms);
  const serverNotices = new ServerNotices({
    rooms,
    serverName: kernel.serverName,
    userExists: (userId) => accounts.userExists(userId),
    sending,
  });
  if (sending && (await accounts.userExists(sending.user.userId))) {
    const fields = { user: sending.user.userId };
    kernel.log.warn(
      fields,
      'server_notices.system_mxid_localpart names an existing account: its owner can send notices in the name of the server',
    );
  }
  opened.add('server notices', { routes: serverNoticeRoutes(serverNotices) });
}

function noticeSending(kernel: Kernel, { tags }: Users, rooms: Rooms) {
  const user = noticesUserOf(kernel);
  const { server_notices: options } = kernel.configuration.serverNotices;
  if (options === null || user === undefined) return undefined;
  const roomVersion = kernel.configuration.rooms.default_room_version;
  return { user, noticeRooms: new NoticeRooms({ ...kernel, rooms, tags, user, options, roomVersion }) };
}
