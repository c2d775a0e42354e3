import { type CacheRegistry, MiB } from '../kernel/caches/index.ts';
import { whenReady } from '../kernel/when-ready.ts';
import type { IgnoredUserLists } from '../room-engine/index.ts';
import type { SyncSource } from '../sync-contract/index.ts';
import type { Typing } from './typing.ts';

const type = 'm.typing';

/** Maximum number of rooms whose typing event is cached as text. */
const maxTexts = 10_000;

/**
 * Typing users in syncs, without users whom the syncing user ignores. Source: client-server API, "Typing Notifications";
 * MSC3961 (sliding sync).
 */
export function typingSyncSource(
  typing: Typing,
  ignoring: IgnoredUserLists,
  caches: CacheRegistry,
): SyncSource {
  const textOf = (userIds: readonly string[]) => JSON.stringify({ type, content: { user_ids: userIds } });
  /** The typing event as text, by room id. It is the same for all members who ignore no user. */
  const texts = caches.create<string, string>('typing_events', {
    size: maxTexts,
    maxBytes: 2 * MiB,
    sizeOf: (text) => text.length,
  });
  typing.typingStream.subscribe(({ roomId }) => texts.delete(roomId));
  const eventFor = (roomId: string, ignored: ReadonlySet<string>) => {
    const known = ignored.size === 0 ? texts.get(roomId) : undefined;
    if (known !== undefined) return known;
    const text = textOf(typing.inRoom(roomId, ignored));
    if (ignored.size === 0) texts.set(roomId, text);
    return text;
  };
  return {
    name: 'typing',
    follow: (feeds) => feeds.followRooms(typing.typingStream, ({ roomId }) => roomId),
    ephemeral: {
      type,
      mayHaveChanged: (roomId, after) => typing.changedSince(roomId, after),
      since(userId, roomId) {
        return whenReady(ignoring.of(userId), (ignored) => [eventFor(roomId, ignored)]);
      },
      async initial(userId, roomIds) {
        const ignored = await ignoring.of(userId);
        const users = roomIds.map((roomId) => [roomId, typing.inRoom(roomId, ignored)] as const);
        return new Map(
          users
            .filter(([, userIds]) => userIds.length > 0)
            .map(([roomId, userIds]) => [roomId, [textOf(userIds)]]),
        );
      },
      extension: {
        name: 'typing',
        async inRooms(userId, rooms) {
          const ignored = await ignoring.of(userId);
          const events = new Map<string, string>();
          for (const { roomId, after } of rooms) {
            const userIds = typing.inRoom(roomId, ignored);
            const hasNewData = after === undefined ? userIds.length > 0 : typing.changedSince(roomId, after);
            if (hasNewData) events.set(roomId, textOf(userIds));
          }
          return events;
        },
      },
    },
  };
}
