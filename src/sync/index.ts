/**
 * Sync: returns to clients everything that concerns their user, in the classic sync, sliding sync and the event stream.
 */

export { eventStreamRoutes } from './event-stream/routes.ts';
export { openSync, type SyncServices, type SyncServicesDeps } from './open.ts';
export { type ReadFilter, type SetPresence, syncRoutes } from './routes.ts';
export { slidingSyncMigrations } from './sliding/connections/migrations.ts';
export { slidingSyncRoutes } from './sliding/routes.ts';
