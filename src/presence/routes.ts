import { Type } from 'typebox';
import type { Clock } from '../kernel/clock.ts';
import { type Route, route } from '../kernel/http/index.ts';
import { forbidden, invalidParam, isUserId } from '../protocol/index.ts';
import type { Presence } from './presence.ts';
import { statusContent } from './presence-status.ts';

const path = [
  '/_proto/client/v3/presence/:userId/status',
  '/_proto/client/r0/presence/:userId/status',
] as const;

/** Maximum length of the status message, in UTF-16 code units. */
const maxMessageLength = 2_048;

/** Returns the routes that read and set presence. Source: client-server API, "Presence". */
export function presenceRoutes(presence: Presence, clock: Clock): Route[] {
  return [
    route(
      { operationId: 'getPresence', method: 'GET', path, auth: 'guest' },
      async ({ params: { userId }, requester }) => {
        if (!isUserId(userId)) throw invalidParam('The user id is not valid');
        return statusContent(await presence.get(requester.userId, userId), clock.now());
      },
    ),
    route(
      {
        operationId: 'setPresence',
        method: 'PUT',
        path,
        auth: 'guest',
        body: Type.Object({
          presence: Type.Union([
            Type.Literal('online'),
            Type.Literal('offline'),
            Type.Literal('unavailable'),
          ]),
          status_msg: Type.Optional(Type.Union([Type.String({ maxLength: maxMessageLength }), Type.Null()])),
        }),
        response: Type.Object({}),
      },
      ({ params: { userId }, requester, body }) => {
        if (requester.userId !== userId) throw forbidden('You cannot change the presence of another user');
        const message = body.status_msg?.replaceAll('\0', '');
        presence.set(requester, body.presence, message === '' ? undefined : message);
        return {};
      },
    ),
  ];
}
