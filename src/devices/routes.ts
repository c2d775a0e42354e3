import { Type } from 'typebox';
import { Reply, type Route, route } from '../kernel/http/index.ts';
import type { Devices } from './devices.ts';
import type { Reauthentication } from './reauthentication.ts';
import type { Device } from './store.ts';
import { whoisRoute } from './whois.ts';

const deviceResponse = Type.Object({
  device_id: Type.String(),
  display_name: Type.Union([Type.String(), Type.Null()]),
  last_seen_ip: Type.Union([Type.String(), Type.Null()]),
  last_seen_ts: Type.Union([Type.Integer(), Type.Null()]),
});

const paths = {
  list: ['/_proto/client/v3/devices', '/_proto/client/r0/devices'],
  one: ['/_proto/client/v3/devices/:deviceId', '/_proto/client/r0/devices/:deviceId'],
  delete: ['/_proto/client/v3/delete_devices', '/_proto/client/r0/delete_devices'],
} as const;

/** Returns the routes that let users manage their devices. Source: client-server API, "Device Management". */
export function deviceRoutes(devices: Devices, reauthentication: Reauthentication): Route[] {
  return [
    ...readRoutes(devices),
    updateRoute(devices),
    ...deleteRoutes(devices, reauthentication),
    whoisRoute(devices),
  ];
}

function readRoutes(devices: Devices): Route[] {
  return [
    route(
      {
        operationId: 'getDevices',
        method: 'GET',
        path: paths.list,
        auth: 'guest',
        response: Type.Object({ devices: Type.Array(deviceResponse) }),
      },
      async ({ requester }) => ({ devices: (await devices.list(requester.userId)).map(toResponse) }),
    ),
    route(
      { operationId: 'getDevice', method: 'GET', path: paths.one, auth: 'guest', response: deviceResponse },
      async ({ params, requester }) => toResponse(await devices.get(requester.userId, params.deviceId)),
    ),
  ];
}

function updateRoute(devices: Devices): Route {
  return route(
    {
      operationId: 'updateDevice',
      method: 'PUT',
      path: paths.one,
      auth: 'guest',
      body: Type.Object({ display_name: Type.Optional(Type.String()) }),
    },
    async ({
      params: { deviceId },
      requester: { userId, appservice },
      body: { display_name: displayName },
    }) => {
      if (appservice !== undefined && (await devices.create({ userId, deviceId, displayName }))) {
        return new Reply(201, {});
      }
      if (displayName === undefined) await devices.get(userId, deviceId);
      else await devices.rename(userId, deviceId, displayName);
      return {};
    },
  );
}

/**
 * Refuses a device of another user only after the confirmation, so that a stolen token does not reveal which device ids
 * exist.
 */
function deleteRoutes(devices: Devices, reauthentication: Reauthentication): Route[] {
  const auth = Type.Optional(Type.Unknown());
  return [
    route(
      {
        operationId: 'deleteDevice',
        method: 'DELETE',
        path: paths.one,
        auth: 'user',
        body: Type.Object({ auth }),
      },
      async ({ params: { deviceId }, requester, body, ip }) => {
        const operation = `DELETE /devices/${encodeURIComponent(deviceId)}`;
        const remove = () => removeDevices(devices, requester.userId, [deviceId]);
        if (requester.appservice !== undefined) return remove();
        return reauthentication.confirm({ requester, operation, body, ip }, remove);
      },
    ),
    route(
      {
        operationId: 'deleteDevices',
        method: 'POST',
        path: paths.delete,
        auth: 'user',
        body: Type.Object({ devices: Type.Array(Type.String(), { maxItems: 1000 }), auth }),
      },
      async ({ requester, body, ip }) => {
        const remove = () => removeDevices(devices, requester.userId, body.devices);
        if (requester.appservice !== undefined) return remove();
        const operation = 'POST /delete_devices';
        return reauthentication.confirm({ requester, operation, body, ip }, remove);
      },
    ),
  ];
}

async function removeDevices(devices: Devices, userId: string, deviceIds: readonly string[]) {
  await devices.checkOwner(userId, deviceIds);
  await devices.remove(userId, deviceIds);
  return {};
}

/** Unknown fields are null, because some clients (matrix-nio) fail when they are absent. */
const toResponse = (device: Device) => ({
  device_id: device.deviceId,
  display_name: device.displayName ?? null,
  last_seen_ip: device.lastSeenIp ?? null,
  last_seen_ts: device.lastSeenAt ?? null,
});
