import { Type } from 'typebox';
import type { Clock } from '../../kernel/clock.ts';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { ServedHistory } from '../../room-federation/index.ts';
import type { RoomAccess } from '../room-access.ts';

export interface HistoryRoutesDeps {
  readonly access: RoomAccess;
  readonly history: ServedHistory;
  readonly serverName: string;
  readonly clock: Clock;
}

/** Maximum number of event ids in one list of a request. Rooms have fewer forward extremities. */
const maxEventIds = 1_000;

/**
 * Returns the routes for events and histories of rooms. Source: server-server API, "Backfilling and retrieving
 * missing events" and "Retrieving events" except for room states.
 */
export function historyRoutes(deps: HistoryRoutesDeps): Route[] {
  const { access, history } = deps;
  return [
    route(
      {
        operationId: 'getEvent',
        method: 'GET',
        path: '/_proto/federation/v1/event/:eventId',
        auth: 'server',
      },
      async ({ params, origin }) => {
        const stored = await history.find(params.eventId);
        const { roomId, eventId } = stored.event;
        const head = await access.checkInRoomAt(origin, roomId, [eventId], history);
        return transaction(deps, [await history.event(head, origin, stored)]);
      },
    ),
    route(
      {
        operationId: 'backfillRoom',
        method: 'GET',
        path: '/_proto/federation/v1/backfill/:roomId',
        auth: 'server',
        query: Type.Object({
          v: Type.Array(Type.String(), { minItems: 1, maxItems: maxEventIds }),
          limit: Type.Integer(),
        }),
      },
      async ({ params, query: { v, limit }, origin }) => {
        const head = await access.checkInRoomAt(origin, params.roomId, v, history);
        return transaction(deps, await history.backfill(head, origin, v, limit));
      },
    ),
    ...gapAndTimestampRoutes(deps),
  ];
}

function gapAndTimestampRoutes({ access, history }: HistoryRoutesDeps): Route[] {
  return [
    route(
      {
        operationId: 'getMissingPreviousEvents',
        method: 'POST',
        path: '/_proto/federation/v1/get_missing_events/:roomId',
        auth: 'server',
        body: Type.Object({
          limit: Type.Optional(Type.Integer()),
          min_depth: Type.Optional(Type.Integer()),
          earliest_events: Type.Array(Type.String(), { maxItems: maxEventIds }),
          latest_events: Type.Array(Type.String(), { maxItems: maxEventIds }),
        }),
      },
      async ({ params, origin, body }) => {
        const head = await access.checkInRoomAt(origin, params.roomId, body.latest_events, history);
        const {
          limit = 10,
          min_depth: minDepth = 0,
          earliest_events: earliest,
          latest_events: latest,
        } = body;
        const events = await history.missing(head, origin, { earliest, latest, limit, minDepth });
        return new Reply(200, `{"events":[${events.join()}]}`);
      },
    ),
    route(
      {
        operationId: 'getEventByTimestamp',
        method: 'GET',
        path: '/_proto/federation/v1/timestamp_to_event/:roomId',
        auth: 'server',
        query: Type.Object({ ts: Type.Integer(), dir: Type.Union([Type.Literal('f'), Type.Literal('b')]) }),
        response: Type.Object({ event_id: Type.String(), origin_server_ts: Type.Integer() }),
      },
      async ({ params, query: { ts, dir }, origin }) => {
        const head = await access.checkInRoom(origin, params.roomId);
        const direction = dir === 'f' ? 'forward' : 'backward';
        const { event } = await history.nearest(head, origin, ts, direction);
        return { event_id: event.eventId, origin_server_ts: event.originServerTs };
      },
    ),
  ];
}

/** Returns a response with PDUs in the form of a transaction. @param pdus as JSON text */
function transaction({ serverName, clock }: HistoryRoutesDeps, pdus: readonly string[]): Reply {
  const envelope = JSON.stringify({ origin: serverName, origin_server_ts: clock.now() });
  return new Reply(200, `${envelope.slice(0, -1)},"pdus":[${pdus.join()}]}`);
}
