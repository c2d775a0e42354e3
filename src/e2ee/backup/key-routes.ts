import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { KeyBackups } from './key-backups.ts';
import { checkRoomKeyIds, keyText, parseRoom, parseRooms, parseSession } from './room-keys.ts';

const anyObject = Type.Object({}, { additionalProperties: true });

/** The `unstable` paths are for clients that were written before the backup API was stable. */
const paths = {
  all: [
    '/_proto/client/v3/room_keys/keys',
    '/_proto/client/r0/room_keys/keys',
    '/_proto/client/unstable/room_keys/keys',
  ],
  room: [
    '/_proto/client/v3/room_keys/keys/:roomId',
    '/_proto/client/r0/room_keys/keys/:roomId',
    '/_proto/client/unstable/room_keys/keys/:roomId',
  ],
  session: [
    '/_proto/client/v3/room_keys/keys/:roomId/:sessionId',
    '/_proto/client/r0/room_keys/keys/:roomId/:sessionId',
    '/_proto/client/unstable/room_keys/keys/:roomId/:sessionId',
  ],
} as const;

const backupRequest = { auth: 'user', query: Type.Object({ version: Type.String() }) } as const;

const backupState = Type.Object({ etag: Type.String(), count: Type.Integer() });

/** Maximum UTF-8 bytes of a request body. Clients upload some hundred keys at a time. */
const bodyLimit = 16 * 1024 * 1024;

/** Routes for the keys in backups. */
export function backupKeyRoutes(backups: KeyBackups): Route[] {
  return [...putRoutes(backups), ...getRoutes(backups), ...deleteRoutes(backups)];
}

function putRoutes(backups: KeyBackups): Route[] {
  const put = { method: 'PUT', ...backupRequest, bodyLimit, response: backupState } as const;
  return [
    route(
      { operationId: 'putRoomKeys', path: paths.all, ...put, body: Type.Object({ rooms: anyObject }) },
      ({ requester, query, body }) =>
        backups.put(requester.userId, query.version, parseRooms(body.rooms as JsonObject)),
    ),
    route(
      {
        operationId: 'putRoomKeysByRoomId',
        path: paths.room,
        ...put,
        body: Type.Object({ sessions: anyObject }),
      },
      ({ requester, query, params, body }) =>
        backups.put(requester.userId, query.version, parseRoom(params.roomId, body as JsonObject)),
    ),
    route(
      { operationId: 'putRoomKeyBySessionId', path: paths.session, ...put, body: anyObject },
      ({ requester, query, params: { roomId, sessionId }, body }) =>
        backups.put(requester.userId, query.version, [parseSession(roomId, sessionId, body)]),
    ),
  ];
}

function getRoutes(backups: KeyBackups): Route[] {
  const get = { method: 'GET', ...backupRequest } as const;
  const json = { 'content-type': 'application/json' };
  return [
    route(
      { operationId: 'getRoomKeys', limitedKind: 'large response', path: paths.all, ...get },
      async ({ requester, query }) => {
        return new Reply(200, await backups.rooms(requester.userId, query.version), json);
      },
    ),
    route(
      { operationId: 'getRoomKeysByRoomId', path: paths.room, ...get },
      async ({ requester, query, params: { roomId } }) => {
        checkRoomKeyIds(roomId);
        return new Reply(200, await backups.room(requester.userId, query.version, roomId), json);
      },
    ),
    route(
      { operationId: 'getRoomKeyBySessionId', path: paths.session, ...get },
      async ({ requester, query, params: { roomId, sessionId } }) => {
        checkRoomKeyIds(roomId, sessionId);
        const key = await backups.key(requester.userId, query.version, roomId, sessionId);
        return new Reply(200, keyText(key));
      },
    ),
  ];
}

function deleteRoutes(backups: KeyBackups): Route[] {
  const remove = { method: 'DELETE', ...backupRequest, response: backupState } as const;
  return [
    route({ operationId: 'deleteRoomKeys', path: paths.all, ...remove }, ({ requester, query }) =>
      backups.deleteKeys(requester.userId, query.version, {}),
    ),
    route(
      { operationId: 'deleteRoomKeysByRoomId', path: paths.room, ...remove },
      ({ requester, query, params: { roomId } }) => {
        checkRoomKeyIds(roomId);
        return backups.deleteKeys(requester.userId, query.version, { roomId });
      },
    ),
    route(
      { operationId: 'deleteRoomKeyBySessionId', path: paths.session, ...remove },
      ({ requester, query, params: { roomId, sessionId } }) => {
        checkRoomKeyIds(roomId, sessionId);
        return backups.deleteKeys(requester.userId, query.version, { roomId, sessionId });
      },
    ),
  ];
}
