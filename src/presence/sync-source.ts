import type { SyncSource } from '../sync-contract/index.ts';
import type { Presence } from './presence.ts';
import type { PresenceEvents } from './presence-events.ts';

/** Presence in syncs. Source: client-server API, `GET /sync`, `presence`. */
export const presenceSyncSource = (
  { presenceStream }: Pick<Presence, 'presenceStream'>,
  events: PresenceEvents,
): SyncSource => ({
  name: 'presence',
  follow(feeds) {
    feeds.followMembers(presenceStream, ({ rooms }) => rooms.keys());
    feeds.followUsers(presenceStream, ({ changes }) => changes.keys());
  },
  presence: events,
});
