import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { StatisticsTables } from '../tables.ts';
import { dayOf, hour, hourOf, textOfDay } from '../utc-days.ts';
import { activeUsersSince, type DaySnapshot, readDays, writeDay } from './day-store.ts';

/** Figures of the server on one UTC day. */
export interface DayFigures {
  /** `YYYY-MM-DD` */
  readonly day: string;
  /** Accounts that are not deactivated, guests and users of application services included. */
  readonly users: number;
  /** Local users who sent a request on that day. */
  readonly activeUsers: number;
  /** Rooms that the server is or was in. */
  readonly rooms: number;
  /** Messages that arrived on that day, encrypted ones included. */
  readonly messages: number;
  /** The messages of local users among `messages`. */
  readonly localMessages: number;
  /** Bytes of stored media, without thumbnails. */
  readonly mediaBytes: number;
  readonly databaseBytes: number;
}

/** The history of daily figures. */
export interface DailyFigures {
  /**
   * Returns the figures of the days from `fromDay` to `toDay`, both included, in their order. Days without a running
   * server are absent. `users`, `rooms`, `mediaBytes` and `databaseBytes` are those of the last count of the day: on the
   * current day at most five minutes ago, on an earlier day at most an hour before the day ended or the server stopped. A
   * day without a count has the values of the last counted day since `fromDay`, or 0.
   * @param fromDay `YYYY-MM-DD`, in UTC
   */
  between(fromDay: string, toDay: string): Promise<DayFigures[]>;
}

export interface DayHistoryDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Counts users, rooms and bytes. */
  readonly count: () => Promise<DaySnapshot>;
  /** Writes the counts that are in memory only. */
  readonly flush: () => Promise<unknown>;
}

/** Number of days whose figures are stored. */
const storedDays = 731;

/** Number of days for which the users who sent requests are stored (`user_visits`). */
const storedVisitDays = 61;

/** Number of hours for which the numbers of messages and the active rooms are stored. */
const storedHours = 49;

/** Milliseconds for which a count of the current day is used before a request makes another count. */
const maxAge = 300_000;

/** Stores the figures of each day, for two years. */
export class DayHistory implements DailyFigures {
  readonly #deps: DayHistoryDeps;
  readonly #counting = new LoadOnce<'count', void>();
  #countedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: DayHistoryDeps) {
    this.#deps = deps;
  }

  async between(fromDay: string, toDay: string): Promise<DayFigures[]> {
    const { clock, database, flush } = this.#deps;
    const [first, last] = [numberOfDay(fromDay), numberOfDay(toDay)];
    const now = clock.now();
    const includesToday = first <= dayOf(now) && dayOf(now) <= last;
    if (includesToday && (now - this.#countedAt >= maxAge || dayOf(this.#countedAt) !== dayOf(now))) {
      await this.count();
    } else {
      await flush();
    }
    const reader = database.scanner<StatisticsTables>();
    const activeToday = includesToday
      ? (await activeUsersSince(reader, dayOf(now))).get(dayOf(now))
      : undefined;
    const rows = await readDays(reader, first, last);
    return withKnownValues(
      rows.map((row) =>
        row.day === dayOf(now) && activeToday ? { ...row, active_users: activeToday } : row,
      ),
    );
  }

  /**
   * Stores the figures of the current day so far, and the active users of the two days before, because the last visits of
   * these days may have been written after the last count.
   */
  count(): Promise<void> {
    return this.#counting.run('count', () => this.#count());
  }

  async #count(): Promise<void> {
    const { clock, count, database, flush } = this.#deps;
    const now = clock.now();
    const today = dayOf(now);
    await flush();
    const snapshot = await count();
    const activeUsers = await activeUsersSince(database.scanner<StatisticsTables>(), today - 2);
    await writeDay(database, today, snapshot, activeUsers, {
      day: today - storedDays + 1,
      visit: today - storedVisitDays + 1,
      hour: hourOf(now) - storedHours,
      room: now - storedHours * hour,
    });
    this.#countedAt = now;
  }
}

/** Fills in figures that were not counted on a day: with those of the day before it in `rows`, or with 0. */
function withKnownValues(rows: readonly StatisticsTables['statistics_days'][]): DayFigures[] {
  let latest = { users: 0, rooms: 0, mediaBytes: 0, databaseBytes: 0 };
  return rows.map((row) => {
    latest = {
      users: row.users ?? latest.users,
      rooms: row.rooms ?? latest.rooms,
      mediaBytes: row.media_bytes ?? latest.mediaBytes,
      databaseBytes: row.database_bytes ?? latest.databaseBytes,
    };
    return {
      day: textOfDay(row.day),
      activeUsers: row.active_users ?? 0,
      messages: row.messages,
      localMessages: row.local_messages,
      ...latest,
    };
  });
}

const numberOfDay = (text: string): number => dayOf(Date.parse(`${text}T00:00:00Z`));
