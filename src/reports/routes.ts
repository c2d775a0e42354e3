import { Type } from 'typebox';
import { type RateCheck, type Route, route } from '../kernel/http/index.ts';
import { invalidParam, isUserId } from '../protocol/index.ts';
import type { Reports } from './reports.ts';

const reason = Type.String();

/** Returns the routes where users report events, rooms and users. Source: client-server API, "Reporting Content". */
export function reportRoutes(reports: Reports): Route[] {
  const checkRate: RateCheck = ({ requester }) => requester && reports.checkRate(requester.userId);
  return [
    route(
      {
        operationId: 'reportEvent',
        method: 'POST',
        path: [
          '/_proto/client/v3/rooms/:roomId/report/:eventId',
          '/_proto/client/r0/rooms/:roomId/report/:eventId',
        ],
        auth: 'user',
        checkRate,
        body: Type.Object({
          reason: Type.Optional(reason),
          score: Type.Optional(Type.Integer({ minimum: -100, maximum: 0 })),
        }),
      },
      async ({ params: { roomId, eventId }, body, requester }) => {
        await reports.reportEvent(requester.userId, roomId, eventId, body);
        return {};
      },
    ),
    route(
      {
        operationId: 'reportRoom',
        method: 'POST',
        path: '/_proto/client/v3/rooms/:roomId/report',
        auth: 'user',
        checkRate,
        body: Type.Object({ reason }),
      },
      async ({ params, body, requester }) => {
        await reports.reportRoom(requester.userId, params.roomId, body);
        return {};
      },
    ),
    route(
      {
        operationId: 'reportUser',
        method: 'POST',
        path: '/_proto/client/v3/users/:userId/report',
        auth: 'user',
        checkRate,
        body: Type.Object({ reason }),
      },
      async ({ params: { userId }, body, requester }) => {
        if (!isUserId(userId)) throw invalidParam('The user id is not valid');
        await reports.reportUser(requester.userId, userId, body);
        return {};
      },
    ),
  ];
}
