import { Type } from 'typebox';
import { type AccessCheck, type Route, route } from '../kernel/http/index.ts';
import { invalidParam, type JsonObject } from '../protocol/index.ts';
import type { Viewer } from '../rooms/index.ts';
import type { RelatedEvents } from './related-events.ts';
import type { ThreadList } from './thread-list.ts';

/** Default number of events in a page of each endpoint. */
const defaultLimit = { relations: 5, threads: 20 };

/** Maximum number of events in a page. */
const maxEvents = 100;

const chunk = Type.Array(Type.Unsafe<JsonObject>(Type.Object({})));

const query = Type.Object({
  dir: Type.Optional(Type.Union([Type.Literal('b'), Type.Literal('f')])),
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer()),
  recurse: Type.Optional(Type.Boolean()),
  // The unstable name: clients use it with servers that do not announce the version of the specification that has the
  // stable name.
  'org.matrix.msc3981.recurse': Type.Optional(Type.Boolean()),
});

interface RelationsQuery {
  readonly dir?: 'b' | 'f';
  readonly from?: string;
  readonly to?: string;
  readonly limit?: number;
  readonly recurse?: boolean;
  readonly 'org.matrix.msc3981.recurse'?: boolean;
}

/**
 * Endpoints that list related events and threads. Source: client-server API, "Relationships API" and "Querying
 * threads in a room".
 */
export function relationRoutes(
  related: RelatedEvents,
  threads: ThreadList,
  checkAccess: AccessCheck,
): Route[] {
  return [...relatedEventRoutes(related), threadRoute(threads, checkAccess)];
}

function relatedEventRoutes(related: RelatedEvents): Route[] {
  const contract = {
    method: 'GET',
    auth: 'guest',
    query,
    response: Type.Object({ chunk }),
  } as const;
  const page = (
    viewer: Viewer,
    { roomId, eventId }: { roomId: string; eventId: string },
    { dir, from, to, limit, ...query }: RelationsQuery,
    relType?: string,
    type?: string,
  ) =>
    related.page(viewer, roomId, {
      eventId,
      relType,
      type,
      direction: dir === 'f' ? 'forward' : 'backward',
      // Some clients send an empty token instead of no token.
      from: from === '' ? undefined : from,
      to: to === '' ? undefined : to,
      limit: pageSize(limit, defaultLimit.relations),
      recurse: query.recurse ?? query['org.matrix.msc3981.recurse'] ?? false,
    });
  return [
    route(
      {
        ...contract,
        operationId: 'getRelatingEvents',
        limitedKind: 'large response',
        path: paths('/rooms/:roomId/relations/:eventId'),
      },
      ({ params, query, requester }) => page(requester, params, query),
    ),
    route(
      {
        ...contract,
        operationId: 'getRelatingEventsWithRelType',
        limitedKind: 'large response',
        path: paths('/rooms/:roomId/relations/:eventId/:relType'),
      },
      ({ params, query, requester }) => page(requester, params, query, params.relType),
    ),
    route(
      {
        ...contract,
        operationId: 'getRelatingEventsWithRelTypeAndEventType',
        limitedKind: 'large response',
        path: paths('/rooms/:roomId/relations/:eventId/:relType/:eventType'),
      },
      ({ params, query, requester }) => page(requester, params, query, params.relType, params.eventType),
    ),
  ];
}

function threadRoute(threads: ThreadList, checkAccess: AccessCheck): Route {
  return route(
    {
      operationId: 'getThreadRoots',
      limitedKind: 'large response',
      method: 'GET',
      path: paths('/rooms/:roomId/threads'),
      auth: 'guest',
      checkAccess,
      query: Type.Object({
        include: Type.Optional(Type.Union([Type.Literal('all'), Type.Literal('participated')])),
        from: Type.Optional(Type.String()),
        limit: Type.Optional(Type.Integer()),
      }),
      response: Type.Object({ chunk }),
    },
    ({ params, query: { include = 'all', from, limit }, requester }) =>
      threads.page(requester, params.roomId, {
        include,
        from: from === '' ? undefined : from,
        limit: pageSize(limit, defaultLimit.threads),
      }),
  );
}

/** Returns the path with the stable prefix, and the path with the unstable prefix. */
const paths = <const P extends string>(path: P) =>
  [`/_proto/client/v1${path}`, `/_proto/client/unstable${path}`] as const;

function pageSize(requested: number | undefined, defaultSize: number): number {
  if (requested !== undefined && requested < 1) throw invalidParam('limit must be above 0');
  return Math.min(requested ?? defaultSize, maxEvents);
}
