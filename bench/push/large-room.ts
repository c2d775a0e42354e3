/**
 * Measures the processor time of push rules in a room of 10,000 local members with default rules: for each member and
 * message, the decision whether the message notifies the member, and the count of the member's unread messages. With
 * `--json`, prints the figures for the bench.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { accountDataMigrations, openAccountData } from '../../src/account-data/index.ts';
import { CacheRegistry, cachesSection } from '../../src/kernel/caches/index.ts';
import { type Migration, migrate, openDatabase } from '../../src/kernel/database/index.ts';
import { silentLogger } from '../../src/kernel/observability/index.ts';
import { openUnread, PushRules, pushMigrations } from '../../src/push/index.ts';
import { Receipts, receiptMigrations } from '../../src/receipts/index.ts';
import { ThreadSubscriptions, threadSubscriptionMigrations } from '../../src/thread-subscriptions/index.ts';
import type { OpenDatabase } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { alice, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';

const memberCount = 10_000;

/** Number of measurements, including the first one. */
const rounds = 5;

/** Number of members that join, or send a receipt, at the same time. */
const atOnce = 100;

/** CPU microseconds per member and event. */
interface Figures {
  /** For the decisions whether the first event notifies the members. */
  readonly decisionsFirst: number;
  /** The lowest of the figures for the decisions on later events. */
  readonly decisions: number;
  /** For the unread counts after the first event. */
  readonly countsFirst: number;
  /** The lowest of the figures for the unread counts after later events. */
  readonly counts: number;
}

async function measure(directory: string): Promise<Figures> {
  const fixture = await RoomsUnderTest.open(
    openerIn(directory),
    [...receiptMigrations, ...pushMigrations, ...accountDataMigrations, ...threadSubscriptionMigrations],
    { profiles: { profile: async (userId: string) => ({ displayname: `Member ${userId.slice(1, -5)}` }) } },
  );
  const { database, streams, engine } = fixture;
  const members = Array.from({ length: memberCount }, (_, index) => `@member${index}:test`);
  const roomId = await fixture.room(alice);
  for (let start = 0; start < memberCount; start += atOnce) {
    await Promise.all(members.slice(start, start + atOnce).map((userId) => fixture.join(userId, roomId)));
  }
  const { receipts, unread, eventNotifications, stop } = openPush(fixture);
  const eventId = await fixture.say(alice, roomId, 'Message that all have read');
  for (let start = 0; start < memberCount; start += atOnce) {
    const chunk = members.slice(start, start + atOnce);
    await Promise.all(
      chunk.map((userId) => receipts.send({ userId, roomId, eventId, type: 'm.read', threadId: undefined })),
    );
  }
  const decisions: number[] = [];
  const counts: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const stored = await engine.events.getById(
      await fixture.say(alice, roomId, `Message ${round} to all of you`),
    );
    if (!stored) throw new Error('The message was not stored');
    decisions.push(
      await cpuMicroseconds(async () => {
        const { size } = await eventNotifications.of(stored, members);
        if (size !== memberCount) throw new Error(`${size} of ${memberCount} members were notified`);
      }),
    );
    counts.push(
      await cpuMicroseconds(async () => {
        for (const userId of members) {
          const counted = unread.counts(userId, roomId, streams.current);
          const { notification_count } = counted instanceof Promise ? await counted : counted;
          if (notification_count !== round + 1) throw new Error(`${userId} has ${notification_count} unread`);
        }
      }),
    );
  }
  await stop();
  await engine.close();
  await database.close();
  const [decisionsFirst = Number.NaN, ...laterDecisions] = decisions;
  const [countsFirst = Number.NaN, ...laterCounts] = counts;
  return {
    decisionsFirst,
    decisions: Math.min(...laterDecisions),
    countsFirst,
    counts: Math.min(...laterCounts),
  };
}

/** Opens the part of the server that counts unread messages, with push rules. */
function openPush({ database, streams, clock, engine }: RoomsUnderTest) {
  const kernel = {
    database,
    streams,
    clock,
    engine,
    caches: new CacheRegistry(clock, sectionDefaults(cachesSection)),
  };
  const markers = { find: async () => undefined, set: async () => undefined };
  const { ignoredUsers, invitePermissions } = openAccountData(kernel, () => false);
  const receipts = new Receipts({ ...kernel, markers });
  const { unread, eventNotifications, stop } = openUnread({
    ...kernel,
    log: silentLogger,
    receipts,
    rules: new PushRules(kernel),
    ignored: ignoredUsers,
    threads: new ThreadSubscriptions(kernel).followed,
    invitePolicy: invitePermissions,
    options: { enabled: true, group_unread_count_by_room: true },
  });
  return { receipts, unread, eventNotifications, stop };
}

/** Returns the CPU microseconds of some work for all members, per member. */
async function cpuMicroseconds(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / memberCount;
}

/** Returns a function that opens a new database in a directory. */
function openerIn(directory: string): OpenDatabase {
  const open = async (migrations: readonly Migration[] = []) => {
    const options = { kind: 'sqlite', path: join(directory, 'push.db') } as const;
    const database = await openDatabase(options, { log: pino({ enabled: false }) });
    await migrate(database, migrations);
    return database;
  };
  return open as OpenDatabase;
}

const directory = await mkdtemp(join(tmpdir(), 'hearth-push-'));
try {
  const figures = await measure(directory);
  if (process.argv.includes('--json')) console.log(JSON.stringify(figures));
  else console.table(figures);
} finally {
  await rm(directory, { recursive: true, force: true });
}
