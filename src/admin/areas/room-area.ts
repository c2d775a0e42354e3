import type { Route } from '../../kernel/http/index.ts';
import type { DummyEvents, HistoryPurge, RoomDeletion } from '../../rooms/index.ts';
import { blockRoutes } from '../rooms/block-routes.ts';
import { type DeletionRoutesDeps, deletionRoutes } from '../rooms/deletion-routes.ts';
import { hierarchyRoute } from '../rooms/hierarchy-route.ts';
import { historyPurgeRoutes } from '../rooms/history-purge-routes.ts';
import { historyRoutes } from '../rooms/history-routes.ts';
import { KnownRooms } from '../rooms/known-rooms.ts';
import { redactionRoute } from '../rooms/redaction-route.ts';
import { rightsRoutes } from '../rooms/rights-routes.ts';
import { RoomList } from '../rooms/room-list.ts';
import { roomListRoute } from '../rooms/room-list-routes.ts';
import { roomRoutes } from '../rooms/room-routes.ts';
import type { AreaDeps } from './area-deps.ts';

/** The services that only the area of rooms needs. */
export interface RoomServices {
  readonly deletion: RoomDeletion;
  readonly historyPurge: HistoryPurge;
  readonly dummyEvents: DummyEvents;
  /** Supplied by modules. */
  readonly checkRoomDeletion?: DeletionRoutesDeps['checkRoomDeletion'];
}

/** Returns the routes about rooms. */
export function routesOfRooms(deps: AreaDeps, services: RoomServices): Route[] {
  const { database, rooms, directory, users, cursors, caughtUp } = deps;
  const knownRooms = new KnownRooms(rooms);
  const list = new RoomList({ database, caughtUp });
  return [
    roomListRoute(list, cursors),
    ...roomRoutes({ ...rooms, rooms: knownRooms, list }),
    ...historyRoutes(rooms, knownRooms),
    ...historyPurgeRoutes(services.historyPurge, knownRooms),
    hierarchyRoute(directory.hierarchy, knownRooms),
    ...blockRoutes(rooms.blocked),
    ...deletionRoutes({ ...services, blocked: rooms.blocked, rooms: knownRooms, users }),
    ...rightsRoutes({ ...deps, dummyEvents: services.dummyEvents, knownRooms }),
    redactionRoute({ ...deps, knownRooms }),
  ];
}
