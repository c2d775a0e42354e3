import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { unredactedEvent } from '../redactions/unredacted-event.ts';
import type { Rooms } from '../rooms.ts';
import { clientPath } from './paths.ts';
import { readAccess } from './read-access.ts';

/** Query parameter that requests the content from before a redaction (MSC2815). */
const unredactedKey = 'fi.mau.msc2815.include_unredacted_content';

/**
 * Endpoints that read single events. Source: client-server API, `GET /rooms/{roomId}/event/{eventId}` and
 * `GET /rooms/{roomId}/timestamp_to_event`, which is also served under its unstable path (MSC3030).
 */
export function eventRoutes(rooms: Pick<Rooms, 'engine' | 'historyReader' | 'eventByTime'>): Route[] {
  return [
    route(
      {
        operationId: 'getOneRoomEvent',
        method: 'GET',
        path: clientPath('/rooms/:roomId/event/:eventId'),
        auth: 'guest',
        query: Type.Object({ [unredactedKey]: Type.Optional(Type.Boolean()) }),
        response: Type.Unsafe<JsonObject>(Type.Object({})),
      },
      ({ params: { roomId, eventId }, query, requester }) =>
        query[unredactedKey] === true
          ? unredactedEvent(rooms, requester, roomId, eventId)
          : rooms.historyReader.event(requester, roomId, eventId),
    ),
    route(
      {
        operationId: 'getEventByTimestamp',
        method: 'GET',
        path: [
          '/_proto/client/v1/rooms/:roomId/timestamp_to_event',
          '/_proto/client/unstable/org.matrix.msc3030/rooms/:roomId/timestamp_to_event',
        ],
        auth: 'guest',
        checkAccess: readAccess(rooms.engine),
        query: Type.Object({
          ts: Type.Integer({ minimum: 0 }),
          // The specification requires `dir`, but some clients leave it out: they receive the first event at or after
          // `ts`.
          dir: Type.Optional(Type.Union([Type.Literal('f'), Type.Literal('b')])),
        }),
        response: Type.Object({ event_id: Type.String(), origin_server_ts: Type.Integer() }),
      },
      async ({ params, query, requester }) => {
        const direction = query.dir === 'b' ? 'backward' : 'forward';
        const { event } = await rooms.eventByTime.find(requester, params.roomId, query.ts, direction);
        return { event_id: event.eventId, origin_server_ts: event.originServerTs };
      },
    ),
  ];
}
