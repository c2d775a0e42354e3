import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { unredactedEvent } from '../redactions/unredacted-event.ts';
import type { Rooms } from '../rooms.ts';
import { clientPath } from './paths.ts';

/** Asks for what a redaction took away: MSC2815. */
const unredactedKey = 'fi.mau.msc2815.include_unredacted_content';

/** Client-server API, `GET /rooms/{roomId}/event/{eventId}`. */
export function eventRoute(rooms: Pick<Rooms, 'engine' | 'reading'>): Route {
  return route(
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
        : rooms.reading.event(requester, roomId, eventId),
  );
}
