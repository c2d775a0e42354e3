import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { Sending } from '../sending.ts';
import { clientPath } from './paths.ts';

const content = Type.Unsafe<JsonObject>(Type.Object({}));
const sent = Type.Object({ event_id: Type.String() });

/** Client-server API, "Sending events to a room" and "Redactions". */
export function sendingRoutes(sending: Sending): Route[] {
  return [
    route(
      {
        operationId: 'sendMessage',
        method: 'PUT',
        path: clientPath('/rooms/:roomId/send/:eventType/:txnId'),
        auth: 'guest',
        query: Type.Object({ ts: Type.Optional(Type.Integer()) }),
        body: content,
        response: sent,
      },
      async ({ params, body, query, requester }) => {
        const mayTravelInTime = requester.appservice !== undefined && query.ts !== undefined;
        const message = {
          type: params.eventType,
          content: body,
          ...(mayTravelInTime ? { originServerTs: query.ts } : undefined),
        };
        return { event_id: await sending.message(requester, params.roomId, message, params.txnId) };
      },
    ),
    route(
      {
        operationId: 'redactEvent',
        method: 'PUT',
        path: clientPath('/rooms/:roomId/redact/:eventId/:txnId'),
        auth: 'guest',
        body: Type.Object({ reason: Type.Optional(Type.String()) }),
        response: sent,
      },
      async ({ params, body, requester }) => {
        const reason = body.reason === undefined ? {} : { reason: body.reason };
        const { roomId, eventId, txnId } = params;
        return { event_id: await sending.redact(requester, roomId, eventId, reason, txnId) };
      },
    ),
    ...stateRoutes(sending),
  ];
}

function stateRoutes(sending: Sending): Route[] {
  const contract = {
    operationId: 'setRoomStateWithKey',
    method: 'PUT',
    auth: 'guest',
    body: content,
    response: sent,
  } as const;
  return [
    route(
      { ...contract, path: clientPath('/rooms/:roomId/state/:eventType/:stateKey') },
      async ({ params, body, requester }) => {
        const { roomId, eventType: type, stateKey } = params;
        return { event_id: await sending.state(requester, roomId, { type, stateKey }, body) };
      },
    ),
    // With an empty state key the slash before it may be left out.
    route(
      {
        ...contract,
        path: [
          '/_proto/client/v3/rooms/:roomId/state/:eventType',
          '/_proto/client/r0/rooms/:roomId/state/:eventType',
          '/_proto/client/v3/rooms/:roomId/state/:eventType/',
          '/_proto/client/r0/rooms/:roomId/state/:eventType/',
        ],
      },
      async ({ params, body, requester }) => {
        const { roomId, eventType: type } = params;
        return { event_id: await sending.state(requester, roomId, { type, stateKey: '' }, body) };
      },
    ),
  ];
}
