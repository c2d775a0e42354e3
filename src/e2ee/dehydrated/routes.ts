import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import { decodePosition, encodePosition } from '../../kernel/streams/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { DehydratedDevices } from './dehydrated-devices.ts';

const devicePath = '/_proto/client/unstable/org.matrix.msc3814.v1/dehydrated_device';
const eventsPath = `${devicePath}/:deviceId/events` as const;

const anyObject = Type.Object({}, { additionalProperties: true });

/** Maximum UTF-8 bytes of a request body. */
const bodyLimit = 1024 * 1024;

/** Returns the routes of dehydrated devices. Source: MSC3814. */
export function dehydratedDeviceRoutes(dehydrated: DehydratedDevices): Route[] {
  return [putRoute(dehydrated), ...readRoutes(dehydrated), deleteRoute(dehydrated)];
}

function putRoute(dehydrated: DehydratedDevices): Route {
  return route(
    {
      method: 'PUT',
      path: devicePath,
      auth: 'user',
      body: Type.Object({
        device_id: Type.String(),
        device_data: anyObject,
        initial_device_display_name: Type.Optional(Type.String()),
        device_keys: anyObject,
        one_time_keys: Type.Optional(anyObject),
        fallback_keys: Type.Optional(anyObject),
      }),
      bodyLimit,
    },
    async ({ requester, body }) => {
      const { device_id, device_data, initial_device_display_name: displayName, ...keys } = body;
      await dehydrated.put(requester.userId, {
        ...(keys as { device_keys: JsonObject; one_time_keys?: JsonObject; fallback_keys?: JsonObject }),
        deviceId: device_id,
        data: device_data as JsonObject,
        displayName,
      });
      return { device_id };
    },
  );
}

function readRoutes(dehydrated: DehydratedDevices): Route[] {
  return [
    route({ method: 'GET', path: devicePath, auth: 'user' }, async ({ requester }) => {
      const { deviceId, data } = await dehydrated.get(requester.userId);
      return { device_id: deviceId, device_data: data };
    }),
    route(
      {
        method: 'GET',
        path: eventsPath,
        auth: 'user',
        query: Type.Object({
          from: Type.Optional(Type.String()),
          limit: Type.Optional(Type.Integer({ minimum: 1 })),
        }),
      },
      async ({ requester, params: { deviceId }, query: { from, limit } }) => {
        const after = from === undefined ? 0 : decodePosition(from);
        const page = await dehydrated.messages(requester.userId, deviceId, after, limit);
        const next = page.isLast ? '' : `,"next_batch":"${encodePosition(page.position)}"`;
        return new Reply(200, `{"events":[${page.messages.join()}]${next}}`);
      },
    ),
    // The earlier form of the endpoint: its clients repeat the request until the response has no messages.
    route(
      {
        method: 'POST',
        path: eventsPath,
        auth: 'user',
        body: Type.Object({ next_batch: Type.Optional(Type.String()) }),
      },
      async ({ requester, params: { deviceId }, body: { next_batch } }) => {
        const after = next_batch === undefined ? 0 : decodePosition(next_batch);
        const { messages, position } = await dehydrated.messages(requester.userId, deviceId, after);
        return new Reply(200, `{"events":[${messages.join()}],"next_batch":"${encodePosition(position)}"}`);
      },
    ),
  ];
}

function deleteRoute(dehydrated: DehydratedDevices): Route {
  return route({ method: 'DELETE', path: devicePath, auth: 'user' }, async ({ requester }) => ({
    device_id: await dehydrated.delete(requester.userId),
  }));
}
