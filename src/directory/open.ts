import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { StreamReader } from '../kernel/streams/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { DirectoryConfig } from './config.ts';
import { PublicRooms, type RemoteRoomLists } from './public-rooms/public-rooms.ts';
import { Publication } from './public-rooms/publication.ts';
import { publicRoomRoutes } from './public-rooms/routes.ts';
import { RoomStats } from './room-stats/room-stats.ts';
import { SpaceHierarchy } from './spaces/hierarchy.ts';
import { type RemoteHierarchies, RemoteRooms } from './spaces/remote-rooms.ts';
import { RoomSummaries } from './spaces/room-summaries.ts';
import { spaceRoutes } from './spaces/routes.ts';
import { mutualRoomRoutes } from './users/mutual-rooms.ts';
import { RemoteUsers } from './users/remote-users.ts';
import { userDirectoryRoutes } from './users/routes.ts';
import { type MayShowUser, UserDirectory } from './users/user-directory.ts';
import { type DirectoryUsers, UserIndex } from './users/user-index.ts';

export interface DirectoryDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamReader;
  readonly clock: Clock;
  readonly log: Logger;
  readonly serverName: string;
  readonly rooms: Rooms;
  readonly jobs: Jobs;
  readonly localUsers: DirectoryUsers;
  readonly remoteRoomLists?: RemoteRoomLists | undefined;
  readonly remoteHierarchies?: RemoteHierarchies | undefined;
  readonly options: DirectoryConfig;
  /** Whether a search may show a user; absent: a search may show all users. */
  readonly mayShow?: MayShowUser | undefined;
}

/** The room directory and the user directory. */
export interface Directory {
  readonly stats: RoomStats;
  readonly publicRooms: PublicRooms;
  readonly publication: Publication;
  readonly summaries: RoomSummaries;
  readonly hierarchy: SpaceHierarchy;
  readonly remoteUsers: RemoteUsers;
  readonly userIndex: UserIndex;
  readonly users: UserDirectory;
}

/** Opens the directories and starts to follow rooms. Must be called before jobs are started. */
export async function openDirectory(deps: DirectoryDeps) {
  const { rooms, options } = deps;
  const { engine, published } = rooms;
  const stats = new RoomStats({ ...deps, engine });
  const remote = new RemoteRooms(deps.remoteHierarchies, deps.clock, deps.caches);
  const remoteUsers = new RemoteUsers({ ...deps, engine });
  const userIndex = new UserIndex(deps);
  const directory: Directory = {
    stats,
    publicRooms: new PublicRooms({ ...deps, published, stats, remote: deps.remoteRoomLists }, options),
    publication: new Publication(engine, published),
    summaries: new RoomSummaries({ ...rooms, ...deps, remote }),
    hierarchy: new SpaceHierarchy({ ...rooms, ...deps, remote }),
    remoteUsers,
    userIndex,
    users: new UserDirectory(
      { ...deps, engine, indexes: [stats, remoteUsers, userIndex] },
      options.user_directory,
    ),
  };
  const followers = [
    ...(options.stats.enabled ? [stats] : []),
    ...(options.user_directory.enabled ? [remoteUsers] : []),
  ];
  for (const follower of followers) await follower.start();
  return {
    directory,
    routes: directoryRoutes(directory, rooms, options),
    async stop() {
      for (const follower of followers) await follower.stop();
    },
  };
}

function directoryRoutes(directory: Directory, rooms: Rooms, options: DirectoryConfig): Route[] {
  const { publicRooms, publication, summaries, hierarchy, users } = directory;
  return [
    ...publicRoomRoutes(publicRooms, publication, options.allow_public_rooms_without_auth),
    ...spaceRoutes(summaries, hierarchy),
    ...userDirectoryRoutes(users),
    ...mutualRoomRoutes(rooms.engine),
  ];
}
