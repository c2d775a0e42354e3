import { Type } from 'typebox';
import { Reply, type Route, route } from '../kernel/http/index.ts';
import type { Sync } from './classic/sync.ts';
import type { SyncFilter } from './classic/sync-filter.ts';

/** Turns the `filter` query parameter (an id or JSON) into a filter. */
export type ReadSyncFilter = (userId: string, filter: string | undefined) => SyncFilter | Promise<SyncFilter>;

/** Takes note of `set_presence`; declared here, supplied at composition. */
export type SetPresence = (userId: string, presence: 'online' | 'offline' | 'unavailable') => void;

/** Client-server API, "Syncing". */
export function syncRoutes(sync: Sync, readFilter: ReadSyncFilter, setPresence: SetPresence): Route[] {
  return [
    route(
      {
        operationId: 'sync',
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
        }),
      },
      async (request) => {
        const { query, requester } = request;
        setPresence(requester.userId, query.set_presence ?? 'online');
        const text = await sync.sync({
          userId: requester.userId,
          deviceId: requester.deviceId,
          filter: await readFilter(requester.userId, query.filter),
          since: query.since,
          timeout: Math.max(0, query.timeout ?? 0),
          fullState: query.full_state ?? false,
          signal: request.signal,
        });
        return new Reply(200, text);
      },
    ),
  ];
}
