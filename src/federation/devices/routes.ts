import { Type } from 'typebox';
import type { E2ee } from '../../e2ee/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { invalidParam, isUserId, serverOfUser, tooLarge } from '../../protocol/index.ts';
import type { DeviceListAnnouncer } from './device-list-announcer.ts';
import { type LocalDevicesDeps, readLocalDevices } from './local-devices.ts';

export interface DeviceQueryDeps extends LocalDevicesDeps {
  readonly claiming: E2ee['claiming'];
  readonly announcer: DeviceListAnnouncer;
  readonly serverName: string;
}

/** Maximum number of users in a key query or a claim. */
const maxUsers = 5_000;

/** Maximum number of devices in a claim of one-time keys. */
const maxClaims = 5_000;

/** Maximum number of devices of one user in a request. */
const maxDevices = 1_000;

/** Maximum size of a request body in bytes. */
const bodyLimit = 1024 * 1024;

/**
 * Key and device endpoints for other servers. They answer every server, because users verify and message each
 * other before they share a room. Source: server-server API, "Device Management" and "End-to-End Encryption".
 */
export function deviceQueryRoutes(deps: DeviceQueryDeps): Route[] {
  return [devicesRoute(deps), queryRoute(deps), claimRoute(deps)];
}

function devicesRoute(deps: DeviceQueryDeps): Route {
  return route(
    {
      operationId: 'getUserDevices',
      method: 'GET',
      path: '/_proto/federation/v1/user/devices/:userId',
      auth: 'server',
    },
    async ({ params: { userId } }) => {
      if (!isUserId(userId) || serverOfUser(userId) !== deps.serverName) {
        throw invalidParam('The user is not a user of this server');
      }
      // The stream id is read before the devices: when a device changes in between, the other server receives an update
      // that repeats a part of this response, and does not miss the change.
      const streamId = await deps.announcer.streamIdOf(userId);
      const { keys, names, masterKey, selfSigningKey } = await readLocalDevices(deps, userId);
      const devices = Object.entries(keys).map(([deviceId, deviceKeys]) => {
        const name = names.get(deviceId);
        return {
          device_id: deviceId,
          keys: deviceKeys,
          ...(name !== undefined && { device_display_name: name }),
        };
      });
      return {
        user_id: userId,
        stream_id: streamId,
        devices,
        ...(masterKey && { master_key: masterKey }),
        ...(selfSigningKey && { self_signing_key: selfSigningKey }),
      };
    },
  );
}

function queryRoute({ query, sendDisplayNames, serverName }: DeviceQueryDeps): Route {
  return route(
    {
      operationId: 'queryUserEncryptionKeys',
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/query',
      auth: 'server',
      body: Type.Object({
        device_keys: Type.Record(Type.String(), Type.Array(Type.String(), { maxItems: maxDevices }), {
          maxProperties: maxUsers,
        }),
      }),
      bodyLimit,
    },
    ({ body }) => {
      const users = Object.entries(body.device_keys).filter(([userId]) => isUserOfServer(serverName, userId));
      return query.queryLocal(new Map(users), sendDisplayNames);
    },
  );
}

function claimRoute({ claiming, serverName }: DeviceQueryDeps): Route {
  return route(
    {
      operationId: 'claimUserEncryptionKeys',
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/claim',
      auth: 'server',
      body: Type.Object({
        one_time_keys: Type.Record(
          Type.String(),
          Type.Record(Type.String(), Type.String(), { maxProperties: maxDevices }),
          { maxProperties: maxUsers },
        ),
      }),
      bodyLimit,
    },
    async ({ body }) => {
      const users = Object.entries(body.one_time_keys).filter(([userId]) =>
        isUserOfServer(serverName, userId),
      );
      const requests = users.map(([userId, devices]) => {
        // No device id or algorithm contains U+0000, so there is no key for such an entry.
        const entries = Object.entries(devices).filter((entry) => !entry.join('').includes('\0'));
        return [userId, new Map(entries)] as const;
      });
      const count = requests.reduce((sum, [, devices]) => sum + devices.size, 0);
      if (count > maxClaims) throw tooLarge(`Claim at most ${maxClaims} keys at once`);
      return { one_time_keys: await claiming.claimLocal(new Map(requests)) };
    },
  );
}

const isUserOfServer = (serverName: string, userId: string) =>
  isUserId(userId) && serverOfUser(userId) === serverName;
