/** Directories: public rooms, room summaries, spaces and users. */

export { directoryMigrations } from './migrations.ts';
export { type Directory, type DirectoryDeps, openDirectory } from './open.ts';
export type { ListRequest, PublicRooms, RemoteRoomLists } from './public-rooms/public-rooms.ts';
export type { RoomStats } from './room-stats/room-stats.ts';
export { directoryRules } from './rules.ts';
export type { SpaceHierarchy } from './spaces/hierarchy.ts';
export type { RemoteHierarchies } from './spaces/remote-rooms.ts';
export type { DirectoryTables } from './tables.ts';
export type { MayShowUser } from './users/user-directory.ts';
export type { DirectoryAccount, DirectoryUsers } from './users/user-index.ts';
export { UserIndexJobs } from './users/user-index-jobs.ts';
