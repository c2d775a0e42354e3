import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Database } from '../kernel/database/index.ts';
import type { StreamWriter } from '../kernel/streams/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import { threadSubscriptionRoutes } from './routes.ts';
import { threadSubscriptionSyncSource } from './sync-source.ts';
import { ThreadSubscriptions } from './thread-subscriptions.ts';

export interface OpenThreadSubscriptionsDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly engine: RoomReader;
}

/** Opens subscriptions to threads. */
export function openThreadSubscriptions(deps: OpenThreadSubscriptionsDeps) {
  const threads = new ThreadSubscriptions(deps);
  return {
    threads,
    routes: threadSubscriptionRoutes({ engine: deps.engine, threads }),
    syncSources: [threadSubscriptionSyncSource(threads)],
    streams: [threads.threadStream],
  };
}
