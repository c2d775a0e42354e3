import { Type } from 'typebox';
import type { Filter } from '../filters/index.ts';
import { Reply, type Route, type RouteContract, type RouteRequest, route } from '../kernel/http/index.ts';
import type { CachingSync } from './classic/caching-sync.ts';
import type { StateAfter } from './classic/recipient.ts';

/** Returns the filter that the `filter` query parameter names or contains. */
export type ReadFilter = (userId: string, filter: string | undefined) => Filter | Promise<Filter>;

/**
 * Records `set_presence` when a sync begins; declared here, supplied at composition. The returned function is
 * called when the sync has ended.
 */
export type SetPresence = (
  device: {
    readonly userId: string;
    readonly deviceId: string | undefined;
    /** Whether rate limits do not apply. */
    readonly isUnlimited?: boolean;
  },
  presence: 'online' | 'offline' | 'unavailable',
) => () => void;

/** Number of timeline events when the client requests no number. */
const defaultLimit = 10;

const syncContract = {
  operationId: 'sync',
  limitedKind: 'long poll',
  method: 'GET',
  path: ['/_proto/client/v3/sync', '/_proto/client/r0/sync'],
  auth: 'guest',
  query: Type.Object({
    filter: Type.Optional(Type.String()),
    since: Type.Optional(Type.String()),
    full_state: Type.Optional(Type.Boolean()),
    set_presence: Type.Optional(
      Type.Union([Type.Literal('offline'), Type.Literal('online'), Type.Literal('unavailable')]),
    ),
    timeout: Type.Optional(Type.Integer()),
    use_state_after: Type.Optional(Type.Boolean()),
    'org.matrix.msc4222.use_state_after': Type.Optional(Type.Boolean()),
  }),
} as const satisfies RouteContract;

function stateAfterIn(query: {
  readonly use_state_after?: boolean;
  readonly 'org.matrix.msc4222.use_state_after'?: boolean;
}): StateAfter | undefined {
  if (query.use_state_after) return 'state_after';
  return query['org.matrix.msc4222.use_state_after'] ? 'org.matrix.msc4222.state_after' : undefined;
}

/**
 * Returns the route of the classic sync. Source: client-server API, "Syncing". A sync without new data, the most
 * frequent request of all, is answered without awaiting anything when everything is in memory.
 * @param maxTimelineEvents the largest timeline (`filter_timeline_limit`)
 */
export function syncRoutes(
  sync: CachingSync,
  readFilter: ReadFilter,
  setPresence: SetPresence,
  maxTimelineEvents: number,
): Route[] {
  const answer = (request: RouteRequest<typeof syncContract>, filter: Filter) => {
    const { query, requester } = request;
    const endSync = setPresence(requester, query.set_presence ?? 'online');
    let isWaiting = false;
    try {
      const text = sync.sync({
        userId: requester.userId,
        deviceId: requester.deviceId,
        filter,
        timelineLimit: Math.min(filter.room.timeline.limit ?? defaultLimit, maxTimelineEvents),
        since: query.since,
        timeout: Math.max(0, query.timeout ?? 0),
        fullState: query.full_state ?? false,
        stateAfter: stateAfterIn(query),
        tokenId: requester.tokenId,
        filterText: query.filter,
        client: request,
      });
      if (!(text instanceof Promise)) return new Reply(200, text);
      isWaiting = true;
      return text.then((later) => new Reply(200, later)).finally(endSync);
    } finally {
      if (!isWaiting) endSync();
    }
  };
  return [
    route(syncContract, (request) => {
      const filter = readFilter(request.requester.userId, request.query.filter);
      return filter instanceof Promise
        ? filter.then((loadedFilter) => answer(request, loadedFilter))
        : answer(request, filter);
    }),
  ];
}
