import type { RoomReader } from '../room-engine/index.ts';
import type { SyncSource } from '../sync-contract/index.ts';
import type { Presence } from './presence.ts';
import { hasJoin, type PresenceEvents } from './presence-events.ts';

const noRooms: readonly string[] = [];

/** Presence in syncs. Source: client-server API, `GET /sync`, `presence`. */
export const presenceSyncSource = (
  { presenceStream, isEnabled }: Pick<Presence, 'presenceStream' | 'isEnabled'>,
  events: PresenceEvents,
  engine: Pick<RoomReader, 'stream'>,
): SyncSource => ({
  name: 'presence',
  follow(feeds) {
    feeds.followMembers(presenceStream, ({ rooms }) => rooms.keys());
    feeds.followUsers(presenceStream, ({ changes, routed }) =>
      routed ? [...changes.keys(), ...routed.keys()] : changes.keys(),
    );
    if (!isEnabled) return;
    // A user who joins a room, and the members of the room, receive each other's presence.
    feeds.followMembers(engine.stream, ({ roomId, membershipChanges }) =>
      hasJoin(membershipChanges) ? [roomId] : noRooms,
    );
  },
  presence: events,
});
