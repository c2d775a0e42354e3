import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import { parseMessageMap } from './message-map.ts';
import type { ToDevice } from './to-device.ts';

const anyObject = Type.Object({}, { additionalProperties: true });

/** Maximum bytes of a request, which suffice to send room keys to several thousand devices. */
const bodyLimit = 4 * 1024 * 1024;

/** Returns the route that sends to-device messages. Source: client-server API, "Send-to-Device messaging". */
export function toDeviceRoutes(toDevice: ToDevice): Route[] {
  return [
    route(
      {
        operationId: 'sendToDevice',
        method: 'PUT',
        path: [
          '/_proto/client/v3/sendToDevice/:eventType/:txnId',
          '/_proto/client/r0/sendToDevice/:eventType/:txnId',
        ],
        auth: 'guest',
        body: Type.Object({ messages: anyObject }),
        bodyLimit,
        response: Type.Object({}),
      },
      async ({ params: { eventType, txnId }, requester: { userId, deviceId }, body }) => {
        await toDevice.send({
          sender: userId,
          origin: { name: userId, deviceId },
          txnId,
          type: eventType,
          messages: parseMessageMap(body.messages as JsonObject),
        });
        return {};
      },
    ),
  ];
}
