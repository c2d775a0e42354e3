import { Type } from 'typebox';
import { type Route, route } from '../kernel/http/index.ts';
import { forbidden, type JsonObject } from '../protocol/index.ts';
import type { Devices } from './devices.ts';
import type { Connection } from './store.ts';

/**
 * Shows the addresses of a user to that user and to administrators.
 * Source: client-server API, "Server Administration".
 */
export function whoisRoute(devices: Devices): Route {
  return route(
    {
      operationId: 'getWhoIs',
      method: 'GET',
      path: ['/_proto/client/v3/admin/whois/:userId', '/_proto/client/r0/admin/whois/:userId'],
      auth: 'user',
      response: Type.Object({ user_id: Type.String(), devices: Type.Object({}) }),
    },
    async ({ params: { userId }, requester }) => {
      if (requester.userId !== userId && !requester.isAdmin)
        throw forbidden('Only administrators may look up another user');
      const connections = userId.includes('\0') ? [] : await devices.connections(userId);
      return { user_id: userId, devices: connectionsByDevice(connections) };
    },
  );
}

/** The answer's member `devices`: addresses by device. */
export function connectionsByDevice(connections: readonly Connection[]): JsonObject {
  const devices = Map.groupBy(connections, ({ deviceId }) => deviceId);
  const entries = [...devices].map(([deviceId, seen]) => {
    const list = seen.map(({ ip, lastSeenAt, userAgent }) => ({
      ip,
      last_seen: lastSeenAt,
      user_agent: userAgent,
    }));
    return [deviceId, { sessions: [{ connections: list }] }] as const;
  });
  return Object.fromEntries(entries);
}
