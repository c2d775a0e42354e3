import { Type } from 'typebox';
import { connectionsByDevice, type Device, type Devices } from '../../devices/index.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import { flag, integer, nothing, nullableText, text } from '../response-fields.ts';
import type { LocalUsers } from './local-user.ts';

const userPath = '/_server/admin/v2/users/:userId';
const devicePath = `${userPath}/devices/:deviceId` as const;

const deviceResponse = Type.Object({
  device_id: Type.String(),
  user_id: Type.String(),
  display_name: nullableText,
  last_seen_ip: nullableText,
  last_seen_user_agent: nullableText,
  last_seen_ts: Type.Union([Type.Integer(), Type.Null()]),
  dehydrated: flag,
});

/** Lists, creates, changes and deletes devices of users, and lists the IP addresses of their sessions. */
export function deviceRoutes(devices: Devices, users: LocalUsers): Route[] {
  return [...listRoutes(devices, users), ...singleDeviceRoutes(devices, users), whoisRoute(devices, users)];
}

function listRoutes(devices: Devices, users: LocalUsers): Route[] {
  const path = `${userPath}/devices` as const;
  return [
    route(
      {
        operationId: 'listUserDevices',
        method: 'GET',
        path,
        auth: 'admin',
        response: Type.Object({ devices: Type.Array(deviceResponse), total: Type.Integer() }),
      },
      async ({ params: { userId } }) => {
        await users.get(userId);
        const list = (await devices.list(userId)).map((device) => toResponse(userId, device));
        return { devices: list, total: list.length };
      },
    ),
    route(
      {
        operationId: 'createUserDevice',
        method: 'POST',
        path,
        auth: 'admin',
        body: Type.Object({ device_id: Type.String() }),
        response: nothing,
      },
      async ({ params: { userId }, body }) => {
        await users.getActive(userId);
        await devices.create({ userId, deviceId: body.device_id, displayName: undefined });
        return new Reply(201, {});
      },
    ),
    route(
      {
        operationId: 'deleteUserDevices',
        method: 'POST',
        path: `${userPath}/delete_devices`,
        auth: 'admin',
        body: Type.Object({ devices: Type.Array(Type.String(), { maxItems: 1_000 }) }),
        response: nothing,
      },
      async ({ params: { userId }, body }) => {
        await users.get(userId);
        await devices.remove(userId, body.devices);
        return {};
      },
    ),
  ];
}

function singleDeviceRoutes(devices: Devices, users: LocalUsers): Route[] {
  return [
    route(
      {
        operationId: 'getUserDevice',
        method: 'GET',
        path: devicePath,
        auth: 'admin',
        response: deviceResponse,
      },
      async ({ params: { userId, deviceId } }) => {
        await users.get(userId);
        return toResponse(userId, await devices.get(userId, deviceId));
      },
    ),
    route(
      {
        operationId: 'updateUserDevice',
        method: 'PUT',
        path: devicePath,
        auth: 'admin',
        body: Type.Object({ display_name: Type.Optional(Type.String()) }),
        response: nothing,
      },
      async ({ params: { userId, deviceId }, body: { display_name: name } }) => {
        await users.get(userId);
        if (name === undefined) await devices.get(userId, deviceId);
        else await devices.rename(userId, deviceId, name);
        return {};
      },
    ),
    route(
      {
        operationId: 'deleteUserDevice',
        method: 'DELETE',
        path: devicePath,
        auth: 'admin',
        response: nothing,
      },
      async ({ params: { userId, deviceId } }) => {
        await users.get(userId);
        await devices.remove(userId, [deviceId]);
        return {};
      },
    ),
  ];
}

function whoisRoute(devices: Devices, users: LocalUsers): Route {
  return route(
    {
      operationId: 'getUserConnections',
      method: 'GET',
      path: '/_server/admin/v1/whois/:userId',
      auth: 'admin',
      response: Type.Object({
        user_id: text,
        devices: Type.Record(
          text,
          Type.Object({
            sessions: Type.Array(
              Type.Object({
                connections: Type.Array(
                  Type.Object({ ip: text, last_seen: integer, user_agent: nullableText }),
                ),
              }),
            ),
          }),
        ),
      }),
    },
    async ({ params: { userId } }) => {
      await users.get(userId);
      return { user_id: userId, devices: connectionsByDevice(await devices.connections(userId)) };
    },
  );
}

const toResponse = (userId: string, device: Device) => ({
  device_id: device.deviceId,
  user_id: userId,
  display_name: device.displayName ?? null,
  last_seen_ip: device.lastSeenIp ?? null,
  last_seen_user_agent: device.lastSeenUserAgent ?? null,
  last_seen_ts: device.lastSeenAt ?? null,
  dehydrated: device.isDehydrated,
});
