import {
  type Directory,
  type DirectoryUsers,
  directoryRoutes,
  openDirectory,
  startDirectory,
} from '../directory/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { RemoteLookups } from './federation-queries.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import type { Shutdown } from './shutdown.ts';

export interface Directories {
  readonly directory: Directory;
  readonly routes: readonly Route[];
}

/** Opens the directories of rooms and users; to be called before jobs are started. */
export async function startDirectories(
  kernel: Kernel,
  { accounts, profiles, userIndex, notices }: People,
  rooms: Rooms,
  lookups: RemoteLookups,
  shutdown: Shutdown,
): Promise<Directories> {
  const people: DirectoryUsers = {
    account: async (userId) => (userId === notices?.userId ? undefined : accounts.accounts.getUser(userId)),
    profile: (userId) => profiles.read(userId),
  };
  userIndex.register(people);
  const options = kernel.configuration.directory;
  const directory = openDirectory({
    ...kernel,
    rooms,
    people,
    userIndex,
    remoteRoomLists: lookups.roomLists,
    remoteHierarchies: lookups.hierarchies,
    options,
  });
  shutdown.add('directories', await startDirectory(directory, options));
  return { directory, routes: directoryRoutes(directory, rooms, options) };
}
