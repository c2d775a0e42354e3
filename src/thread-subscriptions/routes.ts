import { Type } from 'typebox';
import { type Requester, type Route, route } from '../kernel/http/index.ts';
import { decodePosition } from '../kernel/streams/index.ts';
import { invalidParam } from '../protocol/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { ThreadKey } from './thread.ts';
import { causeInThread, mustSeeThread, noThreadOrSubscription } from './thread-access.ts';
import type { ThreadSubscriptions } from './thread-subscriptions.ts';

const threadPath =
  '/_proto/client/unstable/io.element.msc4306/rooms/:roomId/thread/:rootId/subscription' as const;

/** Number of threads on a page when the request sets no limit. */
const defaultThreads = 100;

/** Maximum number of threads on a page. */
const maxThreads = 500;

export interface ThreadRouteDeps {
  readonly engine: RoomReader;
  readonly threads: ThreadSubscriptions;
}

/** MSC4306, "New Endpoints", and MSC4308, "Companion endpoint", under their unstable names. */
export function threadSubscriptionRoutes(deps: ThreadRouteDeps): Route[] {
  return [...subscriptionRoutes(deps), changesRoute(deps)];
}

function subscriptionRoutes({ engine, threads }: ThreadRouteDeps): Route[] {
  const contract = { path: threadPath, auth: 'user' } as const;
  return [
    route({ ...contract, method: 'GET' }, async ({ params, requester }) => {
      const key = keyOf(params, requester);
      await mustSeeThread(engine, key);
      const state = await threads.stateOf(key);
      if (state === 'none') throw noThreadOrSubscription();
      return { automatic: state === 'automatic' };
    }),
    route(
      { ...contract, method: 'PUT', body: Type.Object({ automatic: Type.Optional(Type.String()) }) },
      async ({ params, requester, body: { automatic } }) => {
        const key = keyOf(params, requester);
        await mustSeeThread(engine, key);
        if (automatic === undefined) await threads.subscribe(key);
        else await threads.subscribeAutomatically(key, await causeInThread(engine, key, automatic));
        return {};
      },
    ),
    route({ ...contract, method: 'DELETE' }, async ({ params, requester }) => {
      const key = keyOf(params, requester);
      await mustSeeThread(engine, key);
      await threads.unsubscribe(key);
      return {};
    }),
  ];
}

function changesRoute({ threads }: ThreadRouteDeps): Route {
  return route(
    {
      method: 'GET',
      path: '/_proto/client/unstable/io.element.msc4308/thread_subscriptions',
      auth: 'user',
      query: Type.Object({
        dir: Type.Literal('b'),
        from: Type.Optional(Type.String()),
        to: Type.Optional(Type.String()),
        limit: Type.Optional(Type.Integer()),
      }),
    },
    ({ requester, query: { from, to, limit = defaultThreads } }) => {
      if (limit < 1) throw invalidParam('limit must be above 0');
      const after = to === undefined ? 0 : decodePosition(to);
      return threads.page(requester.userId, { from, after, limit: Math.min(limit, maxThreads) });
    },
  );
}

const keyOf = ({ roomId, rootId }: { roomId: string; rootId: string }, { userId }: Requester): ThreadKey => ({
  userId,
  roomId,
  rootId,
});
