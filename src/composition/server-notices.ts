import type { Rooms } from '../rooms/index.ts';
import { openServerNotices } from '../server-notices/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens server notices; to be called before jobs are started. */
export async function startServerNotices(
  kernel: Kernel,
  { accounts: { accounts }, tags }: Users,
  rooms: Rooms,
  opened: OpenedSlices,
): Promise<void> {
  const { configuration } = kernel;
  const serverNotices = await openServerNotices({
    ...kernel,
    rooms,
    tags,
    userExists: (userId) => accounts.userExists(userId),
    options: configuration.serverNotices.server_notices,
    roomVersion: configuration.rooms.default_room_version,
  });
  opened.add('server notices', serverNotices);
}
