import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import { forbidden, invalidParam, isRoomId, type JsonObject } from '../protocol/index.ts';
import { type AccountData, maxPieceBytes } from './account-data.ts';
import type { Tags } from './tags.ts';

const paths = {
  global: [
    '/_proto/client/v3/user/:userId/account_data/:type',
    '/_proto/client/r0/user/:userId/account_data/:type',
  ],
  room: [
    '/_proto/client/v3/user/:userId/rooms/:roomId/account_data/:type',
    '/_proto/client/r0/user/:userId/rooms/:roomId/account_data/:type',
  ],
  deleteGlobal: [
    '/_proto/client/v3/user/:userId/account_data/:type',
    '/_proto/client/unstable/org.matrix.msc3391/user/:userId/account_data/:type',
  ],
  deleteRoom: [
    '/_proto/client/v3/user/:userId/rooms/:roomId/account_data/:type',
    '/_proto/client/unstable/org.matrix.msc3391/user/:userId/rooms/:roomId/account_data/:type',
  ],
  tags: [
    '/_proto/client/v3/user/:userId/rooms/:roomId/tags',
    '/_proto/client/r0/user/:userId/rooms/:roomId/tags',
  ],
  tag: [
    '/_proto/client/v3/user/:userId/rooms/:roomId/tags/:tag',
    '/_proto/client/r0/user/:userId/rooms/:roomId/tags/:tag',
  ],
} as const;

/** Maximum bytes of a request that sets a tag. */
const maxTagRequestBytes = 65_536;

const anyObject = Type.Object({}, { additionalProperties: true });

/** Returns the routes that read and change account data. Source: client-server API, "Client Config". */
export function accountDataRoutes(accountData: AccountData): Route[] {
  const set = {
    method: 'PUT',
    auth: 'user',
    body: anyObject,
    needsBody: true,
    bodyLimit: maxPieceBytes,
  } as const;
  const get = { method: 'GET', auth: 'user', response: anyObject } as const;
  return [
    ...deletionRoutes(accountData),
    route(
      { operationId: 'setAccountData', path: paths.global, ...set },
      async ({ params: { userId, type }, requester, body }) => {
        checkOwner(requester, userId);
        await accountData.setByClient({ userId, roomId: undefined, type }, body as JsonObject);
        return {};
      },
    ),
    route(
      { operationId: 'getAccountData', path: paths.global, ...get },
      ({ params: { userId, type }, requester }) => {
        checkOwner(requester, userId);
        return accountData.get({ userId, roomId: undefined, type });
      },
    ),
    route(
      { operationId: 'setAccountDataPerRoom', path: paths.room, ...set },
      async ({ params: { userId, roomId, type }, requester, body }) => {
        checkOwner(requester, userId, roomId);
        await accountData.setByClient({ userId, roomId, type }, body as JsonObject);
        return {};
      },
    ),
    route(
      { operationId: 'getAccountDataPerRoom', path: paths.room, ...get },
      ({ params: { userId, roomId, type }, requester }) => {
        checkOwner(requester, userId, roomId);
        return accountData.get({ userId, roomId, type });
      },
    ),
  ];
}

/** Returns the routes that delete account data. Source: MSC3391, "Removing account data". */
function deletionRoutes(accountData: AccountData): Route[] {
  const contract = { method: 'DELETE', auth: 'user' } as const;
  return [
    route({ path: paths.deleteGlobal, ...contract }, async ({ params: { userId, type }, requester }) => {
      checkOwner(requester, userId);
      await accountData.setByClient({ userId, roomId: undefined, type }, {});
      return {};
    }),
    route(
      { path: paths.deleteRoom, ...contract },
      async ({ params: { userId, roomId, type }, requester }) => {
        checkOwner(requester, userId, roomId);
        await accountData.setByClient({ userId, roomId, type }, {});
        return {};
      },
    ),
  ];
}

/** Returns the routes that read and change the tags of rooms. Source: client-server API, "Room Tagging". */
export function tagRoutes(tags: Tags): Route[] {
  return [
    route(
      {
        operationId: 'getRoomTags',
        method: 'GET',
        path: paths.tags,
        auth: 'user',
        response: Type.Object({ tags: anyObject }),
      },
      async ({ params: { userId, roomId }, requester }) => {
        checkOwner(requester, userId, roomId);
        return { tags: await tags.list(userId, roomId) };
      },
    ),
    route(
      {
        operationId: 'setRoomTag',
        method: 'PUT',
        path: paths.tag,
        auth: 'user',
        body: Type.Object({ order: Type.Optional(Type.Number()) }, { additionalProperties: true }),
        bodyLimit: maxTagRequestBytes,
      },
      async ({ params: { userId, roomId, tag }, requester, body }) => {
        checkOwner(requester, userId, roomId);
        await tags.set(userId, roomId, tag, body as JsonObject);
        return {};
      },
    ),
    route(
      { operationId: 'deleteRoomTag', method: 'DELETE', path: paths.tag, auth: 'user' },
      async ({ params: { userId, roomId, tag }, requester }) => {
        checkOwner(requester, userId, roomId);
        await tags.delete(userId, roomId, tag);
        return {};
      },
    ),
  ];
}

/** @throws MatrixError M_FORBIDDEN for another user's data, M_INVALID_PARAM when `roomId` is not a room id */
function checkOwner(requester: Requester, userId: string, roomId?: string): void {
  if (requester.userId !== userId) throw forbidden("You cannot access another user's account data");
  if (roomId !== undefined && !isRoomId(roomId)) throw invalidParam('The room id is not valid');
}
