import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Notifications } from './notifications.ts';

/** Number of notifications on a page when the request sets no limit. */
const defaultLimit = 20;

/** Maximum number of notifications on a page. */
const maxNotifications = 100;

/** Returns the route that lists notifications. Source: client-server API, "Listing notifications". */
export function notificationRoutes(notifications: Notifications): Route[] {
  return [
    route(
      {
        operationId: 'getNotifications',
        limitedKind: 'large response',
        method: 'GET',
        path: ['/_proto/client/v3/notifications', '/_proto/client/r0/notifications'],
        auth: 'user',
        query: Type.Object({
          from: Type.Optional(Type.String()),
          limit: Type.Optional(Type.Integer()),
          only: Type.Optional(Type.String()),
        }),
        response: Type.Object({
          notifications: Type.Array(Type.Unsafe<JsonObject>(Type.Object({}))),
          next_token: Type.Optional(Type.String()),
        }),
      },
      ({ query: { from, limit = defaultLimit, only }, requester }) =>
        notifications.page(requester, {
          from,
          limit: Math.max(1, Math.min(limit, maxNotifications)),
          onlyHighlights: only === 'highlight',
        }),
    ),
  ];
}
