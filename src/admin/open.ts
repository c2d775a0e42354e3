import type { AccountData } from '../account-data/index.ts';
import type { AccountsSlice, checkUserType } from '../accounts/index.ts';
import type { Directory } from '../directory/index.ts';
import type { Destinations } from '../federation-client/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import type { MediaModeration } from '../media/index.ts';
import type { Profiles } from '../profiles/index.ts';
import type { Pushers } from '../pushers/index.ts';
import type { Reports } from '../reports/index.ts';
import type { DummyEvents, HistoryPurge, RoomDeletion, Rooms, UserRedaction } from '../rooms/index.ts';
import type { ExternalIds } from '../sso/index.ts';
import type { AccountAddresses } from '../third-party-ids/index.ts';
import { AccountValidity } from './account-validity/account-validity.ts';
import { accountValidityRoute } from './account-validity/account-validity-route.ts';
import { AuditLog } from './audit/audit-log.ts';
import { auditLogRoute } from './audit/audit-log-route.ts';
import { backgroundUpdateRoutes } from './background-updates/background-update-routes.ts';
import { BackgroundUpdates, type BackgroundUpdatesDeps } from './background-updates/background-updates.ts';
import { directoryUpdates } from './background-updates/directory-updates.ts';
import { DestinationList } from './federation/destination-list.ts';
import { destinationRoutes } from './federation/destination-routes.ts';
import { ImagesInUse } from './media/images-in-use.ts';
import { mediaRoutes } from './media/media-routes.ts';
import { mediaStatisticsRoute } from './media/media-statistics-route.ts';
import { MediaUsage } from './media/media-usage.ts';
import { RoomMedia } from './media/room-media.ts';
import { UserMediaList } from './media/user-media-list.ts';
import { userMediaRoutes } from './media/user-media-routes.ts';
import { PageCursors } from './paging/page-cursors.ts';
import { registrationTokenRoutes } from './registration-tokens/registration-token-routes.ts';
import { reportRoutes } from './reports/report-routes.ts';
import { blockRoutes } from './rooms/block-routes.ts';
import { type DeletionRoutesDeps, deletionRoutes } from './rooms/deletion-routes.ts';
import { fetchEventRoute } from './rooms/fetch-event-route.ts';
import { hierarchyRoute } from './rooms/hierarchy-route.ts';
import { historyPurgeRoutes } from './rooms/history-purge-routes.ts';
import { historyRoutes } from './rooms/history-routes.ts';
import { KnownRooms } from './rooms/known-rooms.ts';
import { redactionRoute } from './rooms/redaction-route.ts';
import { rightsRoutes } from './rooms/rights-routes.ts';
import { RoomList } from './rooms/room-list.ts';
import { roomListRoute } from './rooms/room-list-routes.ts';
import { roomRoutes } from './rooms/room-routes.ts';
import { largestRoomsRoute } from './server/largest-rooms-route.ts';
import { scheduledTasksRoute } from './server/scheduled-tasks-route.ts';
import { versionRoute } from './server/version-route.ts';
import { accountActionRoutes } from './users/account-action-routes.ts';
import { type CrossSigningReplacement, crossSigningRoute } from './users/cross-signing-route.ts';
import { deviceRoutes } from './users/device-routes.ts';
import { experimentalFeatureRoutes } from './users/experimental-feature-routes.ts';
import { LocalUsers } from './users/local-user.ts';
import { membershipCountRoutes } from './users/membership-count-routes.ts';
import { MembershipCounts } from './users/membership-counts.ts';
import { redactionRoutes } from './users/redaction-routes.ts';
import { userDataRoutes } from './users/user-data-routes.ts';
import { UserEditor } from './users/user-editor.ts';
import { UserList } from './users/user-list.ts';
import { userListRoutes } from './users/user-list-routes.ts';
import { userRoomsRoute } from './users/user-rooms-route.ts';
import { userRoutes } from './users/user-routes.ts';

export interface AdminDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly caches: CacheRegistry;
  readonly serverName: string;
  readonly accounts: AccountsSlice;
  readonly profiles: Profiles;
  readonly accountData: AccountData;
  readonly pushers: Pushers;
  /** Absent on a server without third-party identifiers. */
  readonly addresses: AccountAddresses | undefined;
  /** Absent in a server without single sign-on. */
  readonly externalIds: ExternalIds | undefined;
  readonly crossSigning: CrossSigningReplacement;
  readonly reports: Reports;
  readonly destinations: Destinations;
  readonly jobs: Jobs;
  readonly rooms: Rooms;
  readonly deletion: RoomDeletion;
  readonly historyPurge: HistoryPurge;
  readonly userRedaction: UserRedaction;
  readonly dummyEvents: DummyEvents;
  /** Absent where another process runs the media repository. */
  readonly moderation: MediaModeration | undefined;
  readonly directory: Directory;
  readonly options: Parameters<typeof checkUserType>[1];
  /** This member and the two that follow are callbacks of modules. */
  readonly checkRoomDeletion?: DeletionRoutesDeps['checkRoomDeletion'];
  readonly beforeUpdateBatch?: BackgroundUpdatesDeps['beforeUpdateBatch'];
  readonly updateBatchSize?: BackgroundUpdatesDeps['updateBatchSize'];
}

/** Opens the admin API and its audit log. */
export function openAdmin(deps: AdminDeps): { readonly routes: readonly Route[]; readonly audit: AuditLog } {
  const cursors = new PageCursors(deps.caches);
  const users = new LocalUsers(deps.accounts.accounts, deps.serverName);
  const audit = new AuditLog(deps);
  const caughtUp = () => deps.directory.stats.caughtUp();
  return {
    audit,
    routes: [
      versionRoute,
      auditLogRoute(audit),
      ...backgroundUpdateRoutes(new BackgroundUpdates(deps, directoryUpdates(deps))),
      scheduledTasksRoute(deps.jobs),
      largestRoomsRoute(deps.database),
      fetchEventRoute(deps.rooms),
      ...reportRoutes({ ...deps, ...deps.rooms, cursors, caughtUp }),
      ...destinationRoutes({
        ...deps,
        list: new DestinationList({ ...deps, caughtUp }),
        cursors,
      }),
      ...routesOfUsers(deps, users, cursors),
      ...routesOfRooms(deps, users, cursors),
      ...routesOfMedia(deps, users, cursors),
      ...registrationTokenRoutes(deps.accounts.registrationTokens),
    ],
  };
}

function routesOfUsers(deps: AdminDeps, users: LocalUsers, cursors: PageCursors): Route[] {
  const { database, profiles, options, addresses, externalIds } = deps;
  const { accounts, consents, devices, lastSeen } = deps.accounts;
  const list = new UserList({ database: deps.database, lastSeen });
  const editor = new UserEditor({
    ...deps.accounts,
    accounts,
    profiles,
    users,
    addresses,
    externalIds,
    options,
  });
  return [
    ...userListRoutes(list, cursors),
    ...userRoutes({ database, users, editor, profiles, list, addresses, externalIds, consents }),
    ...accountActionRoutes({ ...deps.accounts, accounts, users }),
    ...deviceRoutes(devices, users),
    ...experimentalFeatureRoutes(users),
    accountValidityRoute(new AccountValidity({ ...deps, accounts }), users),
    crossSigningRoute(deps.crossSigning, users),
    ...redactionRoutes({ redaction: deps.userRedaction, engine: deps.rooms.engine, users }),
    ...membershipCountRoutes(new MembershipCounts(deps), users),
    ...userDataRoutes({ ...deps, engine: deps.rooms.engine, users }),
    userRoomsRoute({
      database,
      engine: deps.rooms.engine,
      cursors,
      caughtUp: () => deps.directory.stats.caughtUp(),
    }),
  ];
}

function routesOfMedia(deps: AdminDeps, users: LocalUsers, cursors: PageCursors): Route[] {
  const { moderation, rooms } = deps;
  if (moderation === undefined) return [];
  const roomMedia = new RoomMedia(rooms.engine);
  const images = new ImagesInUse({ ...deps, caughtUp: () => deps.directory.stats.caughtUp() });
  return [
    ...mediaRoutes({ ...deps, moderation, roomMedia, images, rooms: new KnownRooms(rooms), users }),
    ...userMediaRoutes({ moderation, list: new UserMediaList(deps), users, cursors }),
    mediaStatisticsRoute(new MediaUsage(deps), cursors),
  ];
}

function routesOfRooms(deps: AdminDeps, users: LocalUsers, cursors: PageCursors): Route[] {
  const { database, rooms, directory } = deps;
  const caughtUp = () => directory.stats.caughtUp();
  const knownRooms = new KnownRooms(rooms);
  const list = new RoomList({ database, caughtUp });
  return [
    roomListRoute(list, cursors),
    ...roomRoutes({ ...rooms, rooms: knownRooms, list }),
    ...historyRoutes(rooms, knownRooms),
    ...historyPurgeRoutes(deps.historyPurge, knownRooms),
    hierarchyRoute(directory.hierarchy, knownRooms),
    ...blockRoutes(rooms.blocked),
    ...deletionRoutes({ ...deps, blocked: rooms.blocked, rooms: knownRooms, users }),
    ...rightsRoutes({ ...deps, knownRooms, users }),
    redactionRoute({ ...deps, knownRooms }),
  ];
}
