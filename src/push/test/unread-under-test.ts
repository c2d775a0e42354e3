import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol, type RoomsTuning, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { accountDataMigrations } from '../../account-data/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { Receipts, receiptMigrations } from '../../receipts/index.ts';
import { RoomReader } from '../../room-engine/index.ts';
import { openUnread as openUnreadSlice, PushRules, pushMigrations, type UnreadSliceDeps } from '../index.ts';
import { Notifications } from '../notifications/notifications.ts';
import type { PushTables } from '../tables.ts';
import { MarkList } from '../unread/mark-list.ts';
import { readTallies } from '../unread/store.ts';
import { Tally } from '../unread/tally.ts';

/** A store of read markers that is always empty. */
const noMarkers = { find: async () => undefined, set: async () => undefined };

/** Makes all users ignore these users. */
export function ignoring(...userIds: string[]) {
  const ignored = new Set(userIds);
  return { of: () => ignored, changedAt: () => 0 };
}

type Overrides = Partial<Omit<UnreadSliceDeps, 'options'> & UnreadSliceDeps['options']>;

/** Opens unread counts, badge counts and event notifications over test rooms, with shorthands for their calls. */
export function unreadOver(
  fixture: RoomsUnderTest,
  { enabled = true, group_unread_count_by_room = true, ...overrides }: Overrides = {},
) {
  const { database, streams, clock, engine } = fixture;
  const caches = overrides.caches ?? fixture.caches;
  const receipts = new Receipts({ caches, database, streams, clock, engine, markers: noMarkers });
  const rules = new PushRules({ database, streams, caches, clock });
  const opened = openUnreadSlice({
    database,
    streams,
    caches,
    clock,
    log: silentLogger,
    engine,
    receipts,
    rules,
    ignored: ignoring(),
    threads: { in: () => new Set<string>() },
    invitePolicy: { decide: async () => 'allow' },
    options: { enabled, group_unread_count_by_room },
    ...overrides,
  });
  const { unread, badgeCounts, eventNotifications, evaluation } = opened;
  const invitePolicy = overrides.invitePolicy ?? { decide: async () => 'allow' as const };
  const notifications = new Notifications({
    enabled,
    ...fixture.rooms,
    streams,
    evaluation,
    invitePolicy,
  });
  /** Returns notification and highlight counts of the room, then of the main timeline, then of threads. */
  const counts = async (userId: string, roomId: string) => {
    const { threads, ...main } = await unread.counts(userId, roomId, streams.current);
    const timelines = [main, ...threads.values()];
    const room = {
      notification_count: timelines.reduce((sum, count) => sum + count.notification_count, 0),
      highlight_count: timelines.reduce((sum, count) => sum + count.highlight_count, 0),
    };
    const formatted = (count: typeof room) => `${count.notification_count}/${count.highlight_count}`;
    return [formatted(room), formatted(main), ...[...threads.values()].map(formatted).sort()].join(' ');
  };
  const read = (userId: string, roomId: string, eventId: string, threadId?: string) =>
    receipts.send({ userId, roomId, type: 'm.read', eventId, threadId });
  const badge = (userId: string) => badgeCounts.of(userId);
  /** Returns which of `userIds` an event notifies; a user whom it highlights has `!` at the end. */
  const notified = async (eventId: string, ...userIds: string[]) => {
    const stored = await engine.events.getById(eventId);
    if (!stored) throw new Error(`No event ${eventId}`);
    const notifications = await eventNotifications.of(stored, userIds);
    return [...notifications].map(([userId, { highlight }]) => `${userId}${highlight ? '!' : ''}`).sort();
  };
  return { unread, notifications, eventNotifications, receipts, rules, counts, badge, notified, read };
}

/** Returns the saved tally (the unread events of a user in a room), or an empty one at position 0. */
export async function savedTally(database: Database, userId: string, roomId: string): Promise<Tally> {
  const saved = await readTallies(database.reader<PushTables>(), [{ userId, roomId }]);
  return [...saved.values()][0] ?? new Tally(0, new MarkList(true));
}

/** Opens unread counts over rooms that are not in memory, as after a restart. */
export function unreadFromDisk(fixture: RoomsUnderTest, overrides: Overrides = {}) {
  const { database, clock, caches } = fixture;
  const engine = RoomReader.follow({ database, clock, caches, eventCacheSize: 10_000 });
  return { engine, ...unreadOver(fixture, { ...overrides, engine }) };
}

/** Opens a room of Alice, Bob and Carol, with `Unread` over it. */
export async function openUnread(open: OpenDatabase, overrides: Overrides = {}, rooms: RoomsTuning = {}) {
  const migrations = [...receiptMigrations, ...pushMigrations, ...accountDataMigrations];
  const fixture = await RoomsUnderTest.open(open, migrations, rooms);
  const roomId = await fixture.room(alice, bob, carol);
  return { fixture, roomId, ...unreadOver(fixture, overrides) };
}
