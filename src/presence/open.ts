import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { IgnoredUserLists } from '../room-engine/index.ts';
import type { PresenceConfig } from './config.ts';
import { FollowedPresence } from './followed-presence.ts';
import { Presence, type PresenceDeps } from './presence.ts';
import { PresenceEvents } from './presence-events.ts';
import { presenceRoutes } from './routes.ts';
import { presenceSyncSource } from './sync-source.ts';

export interface OpenPresenceDeps extends Omit<PresenceDeps, 'followed'> {
  readonly caches: CacheRegistry;
  /**
   * Whether another process announces presence. This process then keeps the announced presence in memory, and neither
   * announces nor stores presence itself.
   */
  readonly follows?: boolean;
  readonly ignored: IgnoredUserLists;
  readonly options: PresenceConfig['presence'];
}

/** Opens presence and starts its timers. */
export async function openPresence(deps: OpenPresenceDeps) {
  const { options, clock, caches, follows } = deps;
  const followed = follows ? new FollowedPresence(caches) : undefined;
  const presence = new Presence({ ...deps, followed }, options.enabled);
  await presence.start();
  const events = new PresenceEvents({ ...deps, presence }, options.include_offline_users_on_sync);
  return {
    presence,
    routes: presenceRoutes(presence, clock),
    syncSources: [presenceSyncSource(presence, events, deps.engine)],
    streams: [presence.presenceStream],
    stop: () => presence.stop(),
  };
}
