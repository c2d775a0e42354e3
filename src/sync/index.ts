/** Sync: what clients are told of everything that concerns them. */

export type { EventRule, SyncFilter, TypeRule } from './classic/sync-filter.ts';
export { type Changes, Feed, RoomPart, UserPart } from './feeds/feed.ts';
export { openSync, type SyncServices, type SyncServicesParts } from './open-sync.ts';
export { type ReadSyncFilter, type SetPresence, syncRoutes } from './routes.ts';
export type { AccountDataEvent, SyncSources, UnreadCounts } from './sources.ts';
