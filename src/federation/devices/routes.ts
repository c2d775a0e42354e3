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

/** Users in one question for keys, and devices in one for one-time keys. */
const [maxUsers, maxClaims] = [5_000, 5_000];

/** UTF-8 bytes of a request. */
const bodyLimit = 1024 * 1024;

/**
 * What other servers ask about the devices of local users. Everybody may ask, as people write to each other and verify
 * each other before they share a room. Source: server-server API, "Device Management" and "End-to-End Encryption".
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
        throw invalidParam('This is no user of this server');
      }
      // Before the devices are read: an update that comes in between is sent, and says once more what is in the answer.
      const streamId = await deps.announcer.streamIdOf(userId);
      const { keys, names, masterKey, selfSigningKey } = await readLocalDevices(deps, userId);
      const devices = Object.entries(keys).map(([deviceId, own]) => {
        const name = names.get(deviceId);
        return { device_id: deviceId, keys: own, ...(name !== undefined && { device_display_name: name }) };
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

function queryRoute({ query, sendDisplayNames: tellNames, serverName }: DeviceQueryDeps): Route {
  return route(
    {
      operationId: 'queryUserEncryptionKeys',
      method: 'POST',
      path: '/_proto/federation/v1/user/keys/query',
      auth: 'server',
      body: Type.Object({ device_keys: Type.Record(Type.String(), Type.Array(Type.String())) }),
      bodyLimit,
    },
    ({ body }) => {
      const users = Object.entries(body.device_keys).filter(([userId]) => isOf(serverName, userId));
      if (users.length > maxUsers) throw tooLarge(`Ask for ${maxUsers} users at the most`);
      return query.local(new Map(users), tellNames);
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
        one_time_keys: Type.Record(Type.String(), Type.Record(Type.String(), Type.String())),
      }),
      bodyLimit,
    },
    async ({ body }) => {
      const users = Object.entries(body.one_time_keys).filter(([userId]) => isOf(serverName, userId));
      const wishes = users.map(([userId, devices]) => {
        // What holds U+0000 names neither a device nor an algorithm.
        const entries = Object.entries(devices).filter((entry) => !entry.join('').includes('\0'));
        return [userId, new Map(entries)] as const;
      });
      const count = wishes.reduce((sum, [, devices]) => sum + devices.size, 0);
      if (count > maxClaims) throw tooLarge(`Ask for ${maxClaims} keys at the most`);
      return { one_time_keys: await claiming.local(new Map(wishes)) };
    },
  );
}

const isOf = (serverName: string, userId: string) => isUserId(userId) && serverOfUser(userId) === serverName;
