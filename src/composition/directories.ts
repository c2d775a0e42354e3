import { type DirectoryPeople, directoryRoutes, openDirectory, startDirectory } from '../directory/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import type { Shutdown } from './shutdown.ts';

/** Opens the directories of rooms and users; before jobs are started. @returns their routes */
export async function startDirectories(
  kernel: Kernel,
  { accounts, profiles, userIndex }: People,
  rooms: Rooms,
  shutdown: Shutdown,
): Promise<Route[]> {
  const people: DirectoryPeople = {
    account: (userId) => accounts.accounts.getUser(userId),
    profile: (userId) => profiles.read(userId),
  };
  userIndex.register(people);
  const options = kernel.configuration.directory;
  const directory = openDirectory({ ...kernel, rooms, people, options });
  shutdown.add('directories', await startDirectory(directory, options));
  return directoryRoutes(directory, rooms, options);
}
