import type { Destinations } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { MediaModeration } from '../media/index.ts';
import type { Reports } from '../reports/index.ts';
import type { AdminDeps, AreaDeps } from './areas/area-deps.ts';
import { routesOfMedia } from './areas/media-area.ts';
import { type RoomServices, routesOfRooms } from './areas/room-area.ts';
import { routesOfUsers, type UserServices } from './areas/user-area.ts';
import { AuditLog } from './audit/audit-log.ts';
import { auditLogRoute } from './audit/audit-log-route.ts';
import { backgroundUpdateRoutes } from './background-updates/background-update-routes.ts';
import { BackgroundUpdates, type BackgroundUpdatesDeps } from './background-updates/background-updates.ts';
import { directoryUpdates } from './background-updates/directory-updates.ts';
import { DestinationList } from './federation/destination-list.ts';
import { destinationRoutes } from './federation/destination-routes.ts';
import { PageCursors } from './paging/page-cursors.ts';
import { registrationTokenRoutes } from './registration-tokens/registration-token-routes.ts';
import { reportRoutes } from './reports/report-routes.ts';
import { fetchEventRoute } from './rooms/fetch-event-route.ts';
import { largestRoomsRoute } from './server/largest-rooms-route.ts';
import { scheduledTasksRoute } from './server/scheduled-tasks-route.ts';
import { versionRoute } from './server/version-route.ts';
import { LocalUsers } from './users/local-user.ts';

/** What each area of the admin API needs besides `AdminDeps`. */
export interface AdminAreas {
  readonly users: UserServices;
  readonly rooms: RoomServices;
  /** Absent when `enable_media_repo` is off. */
  readonly media: MediaModeration | undefined;
  readonly reports: Reports;
  readonly destinations: Destinations;
  /** Supplied by modules. */
  readonly updates?: Pick<BackgroundUpdatesDeps, 'beforeUpdateBatch' | 'updateBatchSize'> | undefined;
}

/** Opens the admin API and its audit log. */
export function openAdmin(
  deps: AdminDeps,
  areas: AdminAreas,
): { readonly routes: readonly Route[]; readonly audit: AuditLog } {
  const { accounts, database, jobs, rooms } = deps;
  const audit = new AuditLog(deps);
  const cursors = new PageCursors(deps.caches);
  const caughtUp = () => deps.directory.stats.caughtUp();
  const areaDeps: AreaDeps = {
    ...deps,
    users: new LocalUsers(accounts.accounts, deps.serverName),
    cursors,
    caughtUp,
  };
  const updates = new BackgroundUpdates({ ...deps, ...areas.updates }, directoryUpdates(deps));
  const list = new DestinationList({ database, caughtUp });
  return {
    audit,
    routes: [
      versionRoute,
      auditLogRoute(audit),
      ...backgroundUpdateRoutes(updates),
      scheduledTasksRoute(jobs),
      largestRoomsRoute(database),
      fetchEventRoute(rooms),
      ...reportRoutes({ database, reports: areas.reports, engine: rooms.engine, cursors, caughtUp }),
      ...destinationRoutes({ destinations: areas.destinations, list, cursors }),
      ...routesOfUsers(areaDeps, areas.users),
      ...routesOfRooms(areaDeps, areas.rooms),
      ...(areas.media ? routesOfMedia(areaDeps, areas.media) : []),
      ...registrationTokenRoutes(accounts.registrationTokens),
    ],
  };
}
