import { Type } from 'typebox';
import type { Destinations } from '../../federation-client/index.ts';
import { type Route, route } from '../../kernel/http/index.ts';
import { MatrixError, notFound } from '../../protocol/index.ts';
import type { PageCursors } from '../paging/page-cursors.ts';
import { direction, pageFrom, pageParameters, pageWithTotal } from '../paging/page-query.ts';
import { integer, nothing, nullableInteger, text } from '../response-fields.ts';
import { type DestinationList, destinationOrders, type ListedDestination } from './destination-list.ts';

const path = '/_server/admin/v1/federation/destinations';
const destinationPath = `${path}/:destination` as const;

const server = Type.Object({
  destination: text,
  retry_last_ts: integer,
  retry_interval: integer,
  failure_ts: nullableInteger,
  last_successful_stream_ordering: nullableInteger,
});

const nextToken = Type.Optional(Type.String());

export interface DestinationDeps {
  readonly destinations: Destinations;
  readonly list: DestinationList;
  readonly cursors: PageCursors;
}

/** Lists remote servers with their backoff and their rooms, and ends a backoff. */
export function destinationRoutes(deps: DestinationDeps): Route[] {
  return [listRoute(deps), ...detailRoutes(deps), roomsRoute(deps)];
}

function listRoute({ list, cursors }: DestinationDeps): Route {
  return route(
    {
      operationId: 'listDestinations',
      method: 'GET',
      path,
      auth: 'admin',
      query: Type.Object({
        ...pageParameters,
        destination: Type.Optional(Type.String()),
        order_by: Type.Union(
          destinationOrders.map((order) => Type.Literal(order)),
          { default: 'destination' },
        ),
        dir: Type.Optional(direction),
      }),
      response: Type.Object({ destinations: Type.Array(server), total: integer, next_token: nextToken }),
    },
    async ({ query, requester }) => {
      const order = { by: query.order_by, descending: query.dir === 'b' };
      const { destination: name } = query;
      const listed = { administrator: requester.userId, list: JSON.stringify(['destinations', name, order]) };
      const { rows, next } = await pageFrom(cursors, listed, query, (start, limit) =>
        list.page(name, order, start, limit),
      );
      return {
        destinations: rows.map(destinationJson),
        total: await list.count(name),
        ...(next !== undefined && { next_token: String(next) }),
      };
    },
  );
}

function detailRoutes({ destinations, list }: DestinationDeps): Route[] {
  return [
    route(
      {
        operationId: 'getDestination',
        method: 'GET',
        path: destinationPath,
        auth: 'admin',
        response: Type.Object({ ...server.properties, pending_rooms: integer, pending_edus: integer }),
      },
      async ({ params: { destination } }) => {
        const found = await known(list, destination);
        const { rooms, edus } = await list.pending(destination);
        return { ...destinationJson(found), pending_rooms: rooms, pending_edus: edus };
      },
    ),
    route(
      {
        operationId: 'resetDestinationConnection',
        method: 'POST',
        path: `${destinationPath}/reset_connection`,
        auth: 'admin',
        response: nothing,
      },
      async ({ params: { destination } }) => {
        await known(list, destination);
        if (await destinations.endBackoff(destination)) return {};
        throw new MatrixError(400, 'M_UNKNOWN', 'The server is not in a backoff');
      },
    ),
  ];
}

function roomsRoute({ list, cursors }: DestinationDeps): Route {
  return route(
    {
      operationId: 'listDestinationRooms',
      method: 'GET',
      path: `${destinationPath}/rooms`,
      auth: 'admin',
      query: Type.Object({ ...pageParameters, dir: Type.Optional(direction) }),
      response: Type.Object({
        rooms: Type.Array(Type.Object({ room_id: text, stream_ordering: integer })),
        total: integer,
        next_token: nextToken,
      }),
    },
    async ({ params: { destination }, query, requester }) => {
      await known(list, destination);
      const descending = query.dir === 'b';
      const listed = {
        administrator: requester.userId,
        list: JSON.stringify(['rooms of a destination', destination, descending]),
      };
      const { rows, next, total } = await pageWithTotal(cursors, listed, query, {
        read: (start, limit) => list.rooms(destination, descending, start, limit),
        count: () => list.countRooms(destination),
      });
      return {
        rooms: rows.map(({ room_id, stream_ordering }) => ({ room_id, stream_ordering })),
        total,
        ...(next !== undefined && { next_token: String(next) }),
      };
    },
  );
}

/** Returns a listed server. @throws MatrixError M_NOT_FOUND for an unknown server */
async function known(list: DestinationList, serverName: string): Promise<ListedDestination> {
  const found = serverName.includes('\0') ? undefined : await list.get(serverName);
  if (found === undefined) throw notFound('Unknown destination');
  return found;
}

const destinationJson = (destination: ListedDestination) => ({
  destination: destination.destination,
  retry_last_ts: destination.retry_last_ts,
  retry_interval: destination.retry_interval,
  failure_ts: destination.failure_ts,
  last_successful_stream_ordering: destination.last_successful_stream_ordering,
});
