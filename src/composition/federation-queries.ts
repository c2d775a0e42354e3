import type { Directory } from '../directory/index.ts';
import {
  directoryQueryRoutes,
  historyRoutes,
  profileQueryRoutes,
  RemoteAliases,
  RemoteHierarchies,
  RemoteProfiles,
  RemoteRoomLists,
  RoomAccess,
  stateRoutes,
  userInfoRoute,
} from '../federation/index.ts';
import { QueriesApi } from '../federation-client/index.ts';
import type { Route } from '../kernel/http/index.ts';
import type { OpenIdTokens } from '../openid/index.ts';
import { openServing } from '../room-federation/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Federation } from './federation.ts';
import type { Kernel } from './kernel.ts';
import type { Users } from './users.ts';

/** Lookups at remote servers, made while the request of a client waits for them. */
export interface RemoteLookups {
  readonly profiles: RemoteProfiles;
  readonly aliases: RemoteAliases;
  readonly roomLists: RemoteRoomLists;
  readonly hierarchies: RemoteHierarchies;
}

export function openRemoteLookups(kernel: Kernel, { requests }: Federation): RemoteLookups {
  const queries = new QueriesApi(requests);
  return {
    profiles: new RemoteProfiles(queries, kernel.clock, kernel.caches),
    aliases: new RemoteAliases(queries),
    roomLists: new RemoteRoomLists(queries),
    hierarchies: new RemoteHierarchies(queries, kernel.serverName),
  };
}

/** Returns the routes that let remote servers read rooms, the directory, profiles and the users of OpenID tokens. */
export function federationReadRoutes(
  kernel: Kernel,
  deps: {
    readonly users: Users;
    readonly rooms: Rooms;
    readonly directory: Directory;
    readonly openIdTokens: OpenIdTokens;
  },
): Route[] {
  const { serverName, clock, configuration, database } = kernel;
  const { rooms, users, directory, openIdTokens } = deps;
  const access = new RoomAccess({ ...rooms, serverName });
  const { history, state } = openServing(rooms.engine, database);
  return [
    ...historyRoutes({ access, history, serverName, clock }),
    ...stateRoutes({ access, state, history }),
    ...directoryQueryRoutes({ directory, ...rooms, serverName, options: configuration.directory }),
    ...profileQueryRoutes({ ...users, serverName, options: configuration.profiles }),
    userInfoRoute(openIdTokens),
  ];
}
