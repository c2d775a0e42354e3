import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { forbidden, invalidParam, MatrixError } from '../../protocol/index.ts';
import type { PublicRooms } from './public-rooms.ts';
import type { Publication } from './publication.ts';

const paths = {
  list: ['/_proto/client/v3/publicRooms', '/_proto/client/r0/publicRooms'],
  room: ['/_proto/client/v3/directory/list/room/:roomId', '/_proto/client/r0/directory/list/room/:roomId'],
  network: [
    '/_proto/client/v3/directory/list/appservice/:networkId/:roomId',
    '/_proto/client/r0/directory/list/appservice/:networkId/:roomId',
  ],
} as const;

const server = Type.Optional(Type.String());
const limit = Type.Optional(Type.Integer());
const since = Type.Optional(Type.String());
const visibility = Type.Union([Type.Literal('public'), Type.Literal('private')]);

const listBody = Type.Object({
  limit,
  since,
  filter: Type.Optional(
    Type.Object({
      generic_search_term: Type.Optional(Type.String({ maxLength: 1_000 })),
      room_types: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 100 })),
    }),
  ),
  include_all_networks: Type.Optional(Type.Boolean()),
  third_party_instance_id: Type.Optional(Type.String()),
});

/**
 * Returns the routes of the client-server API, "Published room directory", including the route for application
 * services.
 * @param withoutAuth whether GET requests for the list need no access token (`allow_public_rooms_without_auth`)
 */
export function publicRoomRoutes(
  rooms: PublicRooms,
  publication: Publication,
  withoutAuth: boolean,
): Route[] {
  return [
    route(
      {
        operationId: 'getPublicRooms',
        method: 'GET',
        path: paths.list,
        auth: 'optional',
        query: Type.Object({ limit, since, server }),
      },
      ({ query: { server: serverName, ...request }, requester }) => {
        if (!requester && !withoutAuth) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
        return rooms.list(serverName, request);
      },
    ),
    route(
      {
        operationId: 'queryPublicRooms',
        method: 'POST',
        path: paths.list,
        auth: 'guest',
        query: Type.Object({ server }),
        body: listBody,
      },
      ({ query, body }) => rooms.list(query.server, body),
    ),
    ...publicationRoutes(publication),
  ];
}

function publicationRoutes(publication: Publication): Route[] {
  return [
    route(
      {
        operationId: 'getRoomVisibilityOnDirectory',
        method: 'GET',
        path: paths.room,
        auth: 'none',
        response: Type.Object({ visibility }),
      },
      async ({ params }) => ({
        visibility: (await publication.isPublished(params.roomId)) ? 'public' : 'private',
      }),
    ),
    route(
      {
        operationId: 'setRoomVisibilityOnDirectory',
        method: 'PUT',
        path: paths.room,
        auth: 'user',
        body: Type.Object({ visibility: Type.Optional(visibility) }),
        response: Type.Object({}),
      },
      async ({ params, requester, body }) => {
        await publication.set(requester, params.roomId, (body.visibility ?? 'public') === 'public');
        return {};
      },
    ),
    route(
      {
        operationId: 'updateAppserviceRoomDirectoryVisibility',
        method: 'PUT',
        path: paths.network,
        auth: 'appservice',
        body: Type.Object({ visibility }),
        response: Type.Object({}),
      },
      async ({ params: { networkId, roomId }, requester: { appservice }, body }) => {
        if (appservice === undefined)
          throw forbidden('Only application services may set the visibility in a network');
        if (networkId.includes('\0')) throw invalidParam('Invalid network id');
        await publication.setForNetwork(appservice, networkId, roomId, body.visibility === 'public');
        return {};
      },
    ),
  ];
}
