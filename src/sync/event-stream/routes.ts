import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import type { StreamReader } from '../../kernel/streams/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { ReadingRooms } from '../../rooms/index.ts';
import { accountDataSetByClients } from '../sources/account-data-set-by-clients.ts';
import type { SourceList } from '../sources/source-list.ts';
import type { EventStream } from './event-stream.ts';
import type { InitialSync } from './initial-sync.ts';
import type { RoomInfos } from './room-info.ts';

export interface EventStreamServices {
  readonly rooms: Pick<ReadingRooms, 'engine' | 'historyReader'>;
  readonly streams: StreamReader;
  readonly sources: SourceList;
  readonly roomInfos: RoomInfos;
  readonly initialSync: InitialSync;
  readonly eventStream: EventStream;
}

/** Number of messages of a room when the request has no `limit`. */
const defaultLimit = 20;

const paths = (rest: string) => [`/_proto/client/v3${rest}`, `/_proto/client/r0${rest}`] as const;

/**
 * Endpoints that clients used before `/sync`, and still use for room previews. Source: client-server API,
 * "Room Previews" and the deprecated endpoints of "Syncing".
 * @param maxEventsPerPage the largest page (`filter_timeline_limit`)
 */
export function eventStreamRoutes(services: EventStreamServices, maxEventsPerPage: number): Route[] {
  const limitOf = (requested = defaultLimit) => Math.min(requested, maxEventsPerPage);
  return [...initialRoutes(services, limitOf), ...streamRoutes(services)];
}

function initialRoutes(
  { initialSync, roomInfos, streams, sources }: EventStreamServices,
  limitOf: (requested: number | undefined) => number,
): Route[] {
  const limit = Type.Optional(Type.Integer({ minimum: 0 }));
  return [
    route(
      {
        operationId: 'initialSync',
        limitedKind: 'large response',
        method: 'GET',
        path: paths('/initialSync'),
        auth: 'user',
        query: Type.Object({ limit, archived: Type.Optional(Type.Boolean()) }),
      },
      (request) => {
        const { limit: requestedLimit, archived = false } = request.query;
        return initialSync.all(request.requester, { limit: limitOf(requestedLimit), archived }, request);
      },
    ),
    route(
      {
        operationId: 'roomInitialSync',
        limitedKind: 'large response',
        method: 'GET',
        path: ['/_proto/client/v3/rooms/:roomId/initialSync', '/_proto/client/r0/rooms/:roomId/initialSync'],
        auth: 'guest',
        query: Type.Object({ limit }),
      },
      async (request) => {
        const { params, query, requester } = request;
        const upTo = streams.current;
        const accountData = await accountDataSetByClients(sources, requester.userId);
        const wanted = { limit: limitOf(query.limit), upTo, accountData };
        return roomInfos.of(requester, params.roomId, wanted, request);
      },
    ),
  ];
}

function streamRoutes({ eventStream, rooms }: EventStreamServices): Route[] {
  return [
    route(
      {
        // The specification calls the operation `peekEvents` when the request has a room id.
        operationId: 'getEvents',
        limitedKind: 'long poll',
        method: 'GET',
        path: paths('/events'),
        auth: 'guest',
        query: Type.Object({
          from: Type.Optional(Type.String()),
          timeout: Type.Optional(Type.Integer({ minimum: 0 })),
          room_id: Type.Optional(Type.String()),
        }),
      },
      (request) => {
        const { query, requester, signal } = request;
        const following = { from: query.from, timeout: query.timeout ?? 0, signal };
        return query.room_id === undefined
          ? eventStream.ofUser(requester, following)
          : eventStream.ofRoom(requester, query.room_id, following);
      },
    ),
    route(
      {
        operationId: 'getOneEvent',
        method: 'GET',
        path: ['/_proto/client/v3/events/:eventId', '/_proto/client/r0/events/:eventId'],
        auth: 'user',
      },
      async ({ params: { eventId }, requester }) => {
        const stored = await rooms.engine.events.getById(eventId);
        if (!stored) throw notFound('There is no such event');
        return rooms.historyReader.event(requester, stored.event.roomId, eventId);
      },
    ),
  ];
}
