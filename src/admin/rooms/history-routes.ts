import { Type } from 'typebox';
import { readFilter } from '../../filters/index.ts';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import type { Rooms, Viewer } from '../../rooms/index.ts';
import { anyObject, integer, text } from '../response-fields.ts';
import type { KnownRooms } from './known-rooms.ts';

const path = '/_server/admin/v1/rooms/:roomId';
const direction = Type.Optional(Type.Union([Type.Literal('f'), Type.Literal('b')]));

/** Number of events in a response when the request sets no limit. */
const defaultLimit = 10;

/** Maximum number of events in a response. */
const maxLimit = 1_000;

/** Returns the number of events to return: at most `maxLimit`, and `defaultLimit` when the request sets no limit. */
const limitOf = (requested: number | undefined) => Math.max(0, Math.min(requested ?? defaultLimit, maxLimit));

/** Administrators see all events, whether or not they are in the room. */
const viewerOf = ({ userId, deviceId }: Requester): Viewer => ({ userId, deviceId, seesAllEvents: true });

/** Serves the history of rooms in the format of the client-server API. */
export function historyRoutes(
  { historyReader, eventByTime }: Pick<Rooms, 'historyReader' | 'eventByTime'>,
  rooms: KnownRooms,
): Route[] {
  return [
    route(
      {
        operationId: 'getRoomMessages',
        method: 'GET',
        path: `${path}/messages`,
        auth: 'admin',
        query: Type.Object({
          from: Type.Optional(Type.String()),
          to: Type.Optional(Type.String()),
          dir: direction,
          limit: Type.Optional(Type.Integer({ minimum: 0 })),
          filter: Type.Optional(Type.String()),
        }),
        response: Type.Object({
          start: text,
          end: Type.Optional(text),
          chunk: Type.Array(anyObject),
          state: Type.Optional(Type.Array(anyObject)),
        }),
      },
      async ({ params: { roomId }, query, requester }) => {
        await rooms.get(roomId);
        const filter = readFilter(query.filter);
        return historyReader.messages(viewerOf(requester), roomId, {
          from: query.from,
          to: query.to,
          direction: query.dir === 'b' ? 'backward' : 'forward',
          limit: limitOf(query.limit ?? filter.limit),
          filter,
        });
      },
    ),
    route(
      {
        operationId: 'getRoomEventContext',
        method: 'GET',
        path: `${path}/context/:eventId`,
        auth: 'admin',
        query: Type.Object({
          limit: Type.Optional(Type.Integer({ minimum: 0 })),
          filter: Type.Optional(Type.String()),
        }),
        response: Type.Object({
          start: text,
          end: text,
          event: anyObject,
          events_before: Type.Array(anyObject),
          events_after: Type.Array(anyObject),
          state: Type.Array(anyObject),
        }),
      },
      async ({ params: { roomId, eventId }, query, requester }) => {
        await rooms.get(roomId);
        const filter = readFilter(query.filter);
        const limit = limitOf(query.limit ?? filter.limit);
        return historyReader.context(viewerOf(requester), roomId, eventId, { limit, filter });
      },
    ),
    route(
      {
        operationId: 'findRoomEventByTimestamp',
        method: 'GET',
        path: `${path}/timestamp_to_event`,
        auth: 'admin',
        query: Type.Object({ ts: Type.Integer({ minimum: 0 }), dir: direction }),
        response: Type.Object({ event_id: text, origin_server_ts: integer }),
      },
      async ({ params: { roomId }, query, requester }) => {
        await rooms.get(roomId);
        const towards = query.dir === 'b' ? 'backward' : 'forward';
        const found = await eventByTime.find(viewerOf(requester), roomId, query.ts, towards);
        return { event_id: found.event.eventId, origin_server_ts: found.event.originServerTs };
      },
    ),
  ];
}
