import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../test/support/rooms/rooms.ts';
import { plainCaches } from '../../test/support/servers/caches.ts';
import { type AccountChange, accountMigrations } from '../accounts/index.ts';
import type { ActivityListener } from '../devices/index.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { jsonFacts, Stream } from '../kernel/streams/index.ts';
import { mediaMigrations } from '../media/index.ts';
import { DayHistory } from './days/daily-figures.ts';
import { openStatistics } from './index.ts';
import { statisticsMigrations } from './migrations.ts';
import type { StatisticsTables } from './tables.ts';
import { UserVisits } from './visits/user-visits.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** The manual clock starts at 22:13 on this day. */
const firstDay = '2023-11-14';

class StatisticsUnderTest {
  readonly rooms: RoomsUnderTest;
  readonly jobs: Jobs;
  readonly #onActivity: ActivityListener;
  readonly #statistics: Awaited<ReturnType<typeof openStatistics>>;

  private constructor(
    rooms: RoomsUnderTest,
    jobs: Jobs,
    onActivity: ActivityListener,
    opened: Awaited<ReturnType<typeof openStatistics>>,
  ) {
    this.rooms = rooms;
    this.jobs = jobs;
    this.#onActivity = onActivity;
    this.#statistics = opened;
  }

  static async open(open: OpenDatabase): Promise<StatisticsUnderTest> {
    const migrations = [...jobMigrations, ...accountMigrations, ...mediaMigrations, ...statisticsMigrations];
    return StatisticsUnderTest.#openOn(await RoomsUnderTest.open(open, migrations));
  }

  /** Restarts on the same database. @param how a killed process writes nothing before its end */
  async restart(open: OpenDatabase, how: 'stopped' | 'killed'): Promise<StatisticsUnderTest> {
    await this.jobs.stop();
    if (how === 'stopped') await this.#statistics.stop();
    return StatisticsUnderTest.#openOn(await this.rooms.restart(open));
  }

  static async #openOn(rooms: RoomsUnderTest): Promise<StatisticsUnderTest> {
    const deps = { ...pick(rooms), caches: rooms.caches, log: silentLogger, serverName: 'test' };
    const jobs = new Jobs({ ...deps, isOnlyProcess: true });
    const listeners: ActivityListener[] = [];
    const lastSeen = { subscribe: (listener: ActivityListener) => listeners.push(listener) };
    const accountStream = new Stream<AccountChange>('accounts', jsonFacts());
    const opened = await openStatistics({ ...deps, jobs, lastSeen: lastSeen as never, accountStream });
    await jobs.start();
    return new StatisticsUnderTest(rooms, jobs, listeners[0]!, opened);
  }

  /** Reports a request of a user to the statistics. */
  visit(userId: string, userAgent = 'Element/1.6 (Android 14)'): void {
    this.#onActivity({ userId, deviceId: 'D', ip: '::1', userAgent });
  }

  /** Advances the clock in steps, and waits for the jobs of each. */
  async pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += hour) {
      this.rooms.clock.advance(Math.min(hour, milliseconds - passed));
      await this.jobs.settled();
    }
  }

  figures(from = firstDay, to = '2026-12-31') {
    return this.#statistics.dailyFigures.between(from, to);
  }
}

const pick = ({ engine, database, streams, clock }: RoomsUnderTest) => ({ engine, database, streams, clock });

forSelectedDatabases(import.meta.url, (open) => {
  describe('daily figures', () => {
    it('counts messages and active users of each UTC day, also across restarts and a killed process', async () => {
      let fixture = await StatisticsUnderTest.open(open);
      const { rooms } = fixture;
      const roomId = await rooms.room(alice, bob);
      await rooms.say(alice, roomId, 'one');
      await rooms.send(bob, roomId, 'm.room.encrypted', { algorithm: 'x', ciphertext: 'y' });
      await rooms.send(bob, roomId, 'm.reaction', {});
      for (const userId of [alice, alice, bob]) fixture.visit(userId);
      fixture.visit(alice, 'Mozilla/5.0');
      const { databaseBytes, ...first } = (await fixture.figures())[0]!;
      assert.ok(databaseBytes > 10_000, 'the database takes space');
      const counted = { users: 0, rooms: 1, mediaBytes: 0 };
      assert.deepEqual(first, {
        day: firstDay,
        ...counted,
        activeUsers: 2,
        messages: 2,
        localMessages: 2,
      });

      fixture = await fixture.restart(open, 'stopped');
      await fixture.rooms.say(alice, roomId, 'two');
      fixture.visit(bob);
      fixture = await fixture.restart(open, 'killed');
      await fixture.rooms.say(alice, roomId, 'three');
      assert.equal((await fixture.figures())[0]?.messages, 4, 'each message is counted once');

      await fixture.pass(2 * hour);
      fixture.visit(alice);
      await fixture.rooms.say(alice, roomId, 'four');
      const [before, today, ...more] = await fixture.figures();
      assert.deepEqual([before?.day, before?.messages, before?.activeUsers], [firstDay, 4, 2]);
      assert.deepEqual([today?.day, today?.messages, today?.activeUsers], ['2023-11-15', 1, 1]);
      assert.deepEqual(more, []);
      assert.deepEqual(
        (await fixture.figures('2023-11-15', '2023-11-15')).map((figures) => figures.day),
        ['2023-11-15'],
      );
    });

    it('counts after midnight the users who were active in the last hour of the day', async () => {
      const fixture = await StatisticsUnderTest.open(open);
      await fixture.pass(hour + 45 * minute);
      fixture.visit(alice);
      fixture.rooms.clock.advance(2 * minute);
      await fixture.figures();
      await fixture.pass(hour);
      assert.deepEqual(
        (await fixture.figures()).map((figures) => [figures.day, figures.activeUsers]),
        [
          [firstDay, 1],
          ['2023-11-15', 0],
        ],
      );
    });

    it('stores figures for two years, and visits of users for two months', async () => {
      const database = await open(statisticsMigrations);
      const clock = manualClock();
      const figures = { users: 1, rooms: 2, mediaBytes: 3, databaseBytes: 4 };
      const history = new DayHistory({
        database,
        clock,
        count: async () => figures,
        flush: async () => undefined,
      });
      const visits = new UserVisits({
        database,
        clock,
        log: silentLogger,
        caches: plainCaches(manualClock()),
      });
      visits.record({ userId: alice, deviceId: 'D', ip: '::1', userAgent: undefined });
      await visits.flush();
      await history.count();
      clock.advance(61 * day);
      await history.count();
      const left = await database.reader<StatisticsTables>().selectFrom('user_visits').selectAll().execute();
      assert.deepEqual(left, []);
      const days = async () => (await history.between(firstDay, '2026-12-31')).map((found) => found.day);
      assert.deepEqual(await days(), [firstDay, '2024-01-14']);
      clock.advance(670 * day);
      assert.deepEqual(await days(), ['2024-01-14', '2025-11-14']);
    });

    it('writes one batch of messages and one of users a minute, without a query of events', async () => {
      const fixture = await StatisticsUnderTest.open(open);
      const roomId = await fixture.rooms.room(alice);
      await fixture.figures();
      const { statistics } = fixture.rooms.database;
      for (let i = 0; i < 20; i += 1) {
        fixture.visit(alice);
        await fixture.rooms.say(alice, roomId, `message ${i}`);
      }
      const before = { ...statistics };
      fixture.rooms.clock.advance(minute);
      assert.equal((await fixture.figures())[0]?.messages, 20);
      assert.deepEqual([statistics.scans - before.scans, statistics.batches - before.batches], [2, 2]);
    });
  });
});
