import { type Directory, type DirectoryUsers, type MayShowUser, openDirectory } from '../directory/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { RemoteLookups } from './federation-queries.ts';
import type { Kernel } from './kernel.ts';
import { noticesUserOf } from './notices-user.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens the directories of rooms and users. Must be called before jobs are started. */
export async function startDirectories(
  kernel: Kernel,
  { accounts, profiles }: Users,
  rooms: Rooms,
  lookups: RemoteLookups,
  opened: OpenedSlices,
  mayShow?: MayShowUser,
): Promise<Directory> {
  const notices = noticesUserOf(kernel);
  const localUsers: DirectoryUsers = {
    account: async (userId) => (userId === notices?.userId ? undefined : accounts.accounts.getUser(userId)),
    profile: (userId) => profiles.read(userId),
  };
  const directories = await openDirectory({
    ...kernel,
    rooms,
    localUsers,
    remoteRoomLists: lookups.roomLists,
    remoteHierarchies: lookups.hierarchies,
    options: kernel.configuration.directory,
    mayShow,
  });
  return opened.add('directories', directories).directory;
}
