import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { EventByTime } from '../history/event-by-time.ts';

/** Client-server API, `GET /rooms/{roomId}/timestamp_to_event`, also where it was before that. */
export function timeRoutes(events: EventByTime): Route[] {
  return [
    route(
      {
        operationId: 'getEventByTimestamp',
        method: 'GET',
        path: [
          '/_proto/client/v1/rooms/:roomId/timestamp_to_event',
          '/_proto/client/unstable/org.matrix.msc3030/rooms/:roomId/timestamp_to_event',
        ],
        auth: 'guest',
        query: Type.Object({
          ts: Type.Integer({ minimum: 0 }),
          dir: Type.Union([Type.Literal('f'), Type.Literal('b')]),
        }),
        response: Type.Object({ event_id: Type.String(), origin_server_ts: Type.Integer() }),
      },
      async ({ params, query, requester }) => {
        const direction = query.dir === 'f' ? 'forward' : 'backward';
        const { event } = await events.find(requester.userId, params.roomId, query.ts, direction);
        return { event_id: event.eventId, origin_server_ts: event.originServerTs };
      },
    ),
  ];
}
