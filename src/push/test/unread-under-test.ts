import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Receipts, receiptMigrations } from '../../receipts/index.ts';
import { PushRules, pushMigrations, Unread, type UnreadDeps } from '../index.ts';

const nowhere = { find: async () => undefined, set: async () => undefined };

/** Makes all users ignore these users. */
export function ignoring(...userIds: string[]) {
  const ignored = new Set(userIds);
  return { of: () => ignored };
}

/** Makes `Unread` over test rooms, and shorthands for its calls. */
export function unreadOver(under: RoomsUnderTest, more: Partial<UnreadDeps> = {}) {
  const { database, streams, clock, engine } = under;
  const caches = more.caches ?? under.caches;
  const receipts = new Receipts({ caches, database, streams, clock, engine, markers: nowhere });
  const rules = new PushRules({ database, streams, caches });
  const ignored = ignoring();
  const threads = { in: () => new Set<string>() };
  const log = silentLogger;
  const deps = {
    database,
    streams,
    caches,
    clock,
    log,
    engine,
    receipts,
    rules,
    ignored,
    threads,
    enabled: true,
    ...more,
  };
  const unread = new Unread(deps);
  /** Returns notification and highlight counts of the room, then of the main timeline, then of threads. */
  const counts = async (userId: string, roomId: string) => {
    const { threads, ...main } = await unread.counts(userId, roomId, streams.current);
    const all = [main, ...threads.values()];
    const room = {
      notification_count: all.reduce((sum, count) => sum + count.notification_count, 0),
      highlight_count: all.reduce((sum, count) => sum + count.highlight_count, 0),
    };
    const both = (count: typeof room) => `${count.notification_count}/${count.highlight_count}`;
    return [both(room), both(main), ...[...threads.values()].map(both).sort()].join(' ');
  };
  const read = (userId: string, roomId: string, eventId: string, threadId?: string) =>
    receipts.give({ userId, roomId, type: 'm.read', eventId, threadId });
  return { unread, receipts, rules, counts, read };
}

/** Opens a room of Alice, Bob and Carol, with `Unread` over it. */
export async function openUnread(open: OpenDatabase, more: Partial<UnreadDeps> = {}) {
  const under = await RoomsUnderTest.open(open, [...receiptMigrations, ...pushMigrations]);
  const roomId = await under.room(alice, bob, carol);
  return { under, roomId, ...unreadOver(under, more) };
}
