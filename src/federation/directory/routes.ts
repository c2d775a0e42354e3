import { Type } from 'typebox';
import type { Directory } from '../../directory/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden, invalidParam, parseRoomAlias } from '../../protocol/index.ts';
import type { Rooms } from '../../rooms/index.ts';

export interface DirectoryQueryDeps {
  readonly directory: Pick<Directory, 'publicRooms' | 'hierarchy'>;
  readonly aliases: Rooms['aliases'];
  readonly serverName: string;
  readonly options: { readonly allow_public_rooms_over_federation: boolean };
}

const listQuery = {
  limit: Type.Optional(Type.Integer()),
  since: Type.Optional(Type.String()),
  include_all_networks: Type.Optional(Type.Boolean()),
  third_party_instance_id: Type.Optional(Type.String()),
};

const filter = Type.Object({
  generic_search_term: Type.Optional(Type.String({ maxLength: 1_000 })),
  room_types: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 100 })),
});

/**
 * Room list, hierarchy and alias endpoints. Source: server-server API, "Published Room Directory", "Spaces",
 * and "Querying for information" for aliases.
 */
export function directoryQueryRoutes(deps: DirectoryQueryDeps): Route[] {
  const { directory, aliases, serverName } = deps;
  return [
    ...roomListRoutes(deps),
    route(
      {
        operationId: 'queryRoomDirectory',
        method: 'GET',
        path: '/_proto/federation/v1/query/directory',
        auth: 'server',
        query: Type.Object({ room_alias: Type.String() }),
        response: Type.Object({ room_id: Type.String(), servers: Type.Array(Type.String()) }),
      },
      async ({ query: { room_alias: alias } }) => {
        if (parseRoomAlias(alias)?.serverName !== serverName) {
          throw invalidParam('This is not an alias of this server');
        }
        const { roomId, servers } = await aliases.resolveLocal(alias);
        return { room_id: roomId, servers };
      },
    ),
    route(
      {
        operationId: 'getSpaceHierarchy',
        method: 'GET',
        path: [
          '/_proto/federation/v1/hierarchy/:roomId',
          '/_proto/federation/unstable/org.matrix.msc2946/hierarchy/:roomId',
        ],
        auth: 'server',
        query: Type.Object({ suggested_only: Type.Optional(Type.Boolean()) }),
      },
      ({ params, query, origin }) =>
        directory.hierarchy.forServer(origin, params.roomId, query.suggested_only === true),
    ),
  ];
}

function roomListRoutes({ directory, options }: DirectoryQueryDeps): Route[] {
  const path = '/_proto/federation/v1/publicRooms';
  const requirePublicRooms = () => {
    if (!options.allow_public_rooms_over_federation) {
      throw forbidden('This server does not show its public rooms to other servers');
    }
  };
  /** Without a limit, and with the limit 0, a page has the maximum number of rooms. */
  const pageLimit = (limit: number | undefined) => limit || Number.MAX_SAFE_INTEGER;
  return [
    route(
      { operationId: 'getPublicRooms', method: 'GET', path, auth: 'server', query: Type.Object(listQuery) },
      ({ query }) => {
        requirePublicRooms();
        return directory.publicRooms.listOwn({ ...query, limit: pageLimit(query.limit) }, true);
      },
    ),
    route(
      {
        operationId: 'queryPublicRooms',
        method: 'POST',
        path,
        auth: 'server',
        body: Type.Object({ ...listQuery, filter: Type.Optional(filter) }),
      },
      ({ body }) => {
        requirePublicRooms();
        return directory.publicRooms.listOwn({ ...body, limit: pageLimit(body.limit) }, true);
      },
    ),
  ];
}
