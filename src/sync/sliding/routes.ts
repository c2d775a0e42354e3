import { Type } from 'typebox';
import { Reply, type Route, route } from '../../kernel/http/index.ts';
import type { SetPresence } from '../routes.ts';
import type { SourceList } from '../sources/source-list.ts';
import { slidingSyncBody } from './request.ts';
import type { SlidingSync } from './sliding-sync.ts';

/** Returns the route of simplified sliding sync, at its unstable path. Source: MSC4186. */
export function slidingSyncRoutes(
  { slidingSync, sources }: { readonly slidingSync: SlidingSync; readonly sources: SourceList },
  setPresence: SetPresence,
): Route[] {
  return [
    route(
      {
        method: 'POST',
        path: '/_proto/client/unstable/org.matrix.simplified_msc3575/sync',
        auth: 'guest',
        limitedKind: 'long poll',
        query: Type.Object({
          pos: Type.Optional(Type.String()),
          timeout: Type.Optional(Type.Integer()),
          set_presence: Type.Optional(
            Type.Union([Type.Literal('offline'), Type.Literal('online'), Type.Literal('unavailable')]),
          ),
        }),
        body: slidingSyncBody(sources),
      },
      async ({ query, body, requester, signal }) => {
        const endSync = setPresence(requester, query.set_presence ?? 'online');
        try {
          const text = await slidingSync.sync({
            userId: requester.userId,
            deviceId: requester.deviceId,
            body,
            pos: query.pos,
            timeout: Math.max(0, query.timeout ?? 0),
            signal,
          });
          return new Reply(200, text);
        } finally {
          endSync();
        }
      },
    ),
  ];
}
