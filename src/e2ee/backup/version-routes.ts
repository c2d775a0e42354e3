import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, type JsonObject } from '../../protocol/index.ts';
import type { KeyBackups } from './key-backups.ts';
import type { Backup } from './version-store.ts';

const anyObject = Type.Object({}, { additionalProperties: true });

/** The `unstable` paths are for clients that were written before the backup API was stable. */
const versionsPath = [
  '/_proto/client/v3/room_keys/version',
  '/_proto/client/r0/room_keys/version',
  '/_proto/client/unstable/room_keys/version',
] as const;
const versionPath = [
  '/_proto/client/v3/room_keys/version/:version',
  '/_proto/client/r0/room_keys/version/:version',
  '/_proto/client/unstable/room_keys/version/:version',
] as const;

const description = { algorithm: Type.String(), auth_data: anyObject };

const backupResponse = Type.Object({
  algorithm: Type.String(),
  auth_data: anyObject,
  count: Type.Integer(),
  etag: Type.String(),
  version: Type.String(),
});

/** Routes for the versions of backups. */
export function backupVersionRoutes(backups: KeyBackups): Route[] {
  return [...readRoutes(backups), ...writeRoutes(backups)];
}

function readRoutes(backups: KeyBackups): Route[] {
  const get = { method: 'GET', auth: 'user', response: backupResponse } as const;
  return [
    route({ operationId: 'getRoomKeysVersionCurrent', path: versionsPath, ...get }, async ({ requester }) =>
      toResponse(await backups.get(requester.userId)),
    ),
    route({ operationId: 'getRoomKeysVersion', path: versionPath, ...get }, async ({ requester, params }) =>
      toResponse(await backups.get(requester.userId, params.version)),
    ),
  ];
}

function writeRoutes(backups: KeyBackups): Route[] {
  return [
    route(
      {
        operationId: 'postRoomKeysVersion',
        method: 'POST',
        path: versionsPath,
        auth: 'user',
        body: Type.Object(description),
        response: Type.Object({ version: Type.String() }),
      },
      async ({ requester, body: { algorithm, auth_data } }) => {
        const authData = auth_data as JsonObject;
        return { version: await backups.create(requester.userId, { algorithm, authData }) };
      },
    ),
    route(
      {
        operationId: 'putRoomKeysVersion',
        method: 'PUT',
        path: versionPath,
        auth: 'user',
        body: Type.Object({ ...description, version: Type.Optional(Type.String()) }),
        response: Type.Object({}),
      },
      async ({ requester, params, body: { algorithm, auth_data, version = params.version } }) => {
        if (version !== params.version)
          throw invalidParam('The version in the body differs from the version in the path');
        await backups.update(requester.userId, version, { algorithm, authData: auth_data as JsonObject });
        return {};
      },
    ),
    route(
      {
        operationId: 'deleteRoomKeysVersion',
        method: 'DELETE',
        path: versionPath,
        auth: 'user',
        response: Type.Object({}),
      },
      async ({ requester, params }) => {
        await backups.delete(requester.userId, params.version);
        return {};
      },
    ),
  ];
}

const toResponse = ({ version, algorithm, authData, etag, count }: Backup) => ({
  algorithm,
  auth_data: authData,
  count,
  etag: String(etag),
  version: String(version),
});
