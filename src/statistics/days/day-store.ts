import type { Database, Reader } from '../../kernel/database/index.ts';
import type { StatisticsTables } from '../tables.ts';

/** The last count of a day. */
export interface DaySnapshot {
  readonly users: number;
  readonly rooms: number;
  readonly mediaBytes: number;
  readonly databaseBytes: number;
}

const setSnapshot = `INSERT INTO statistics_days
    (day, users, rooms, media_bytes, database_bytes, messages, local_messages) VALUES (?, ?, ?, ?, ?, 0, 0)
  ON CONFLICT (day) DO UPDATE SET users = excluded.users, rooms = excluded.rooms,
    media_bytes = excluded.media_bytes, database_bytes = excluded.database_bytes`;

const setActiveUsers = `INSERT INTO statistics_days (day, active_users, messages, local_messages) VALUES (?, ?, 0, 0)
  ON CONFLICT (day) DO UPDATE SET active_users = excluded.active_users`;

/**
 * Writes the counts of a day, and the number of active users of this and earlier days. Deletes rows that are too old.
 * @param oldest the oldest rows that stay: the first day of figures, the first day of visits, the first hour, and the
 * first time of active rooms in milliseconds since the epoch
 */
export function writeDay(
  database: Database,
  day: number,
  { users, rooms, mediaBytes, databaseBytes }: DaySnapshot,
  activeUsers: ReadonlyMap<number, number>,
  oldest: { readonly day: number; readonly visit: number; readonly hour: number; readonly room: number },
): Promise<void> {
  return database.batch([
    { sql: setSnapshot, rows: [[day, users, rooms, mediaBytes, databaseBytes]] },
    { sql: setActiveUsers, rows: [...activeUsers] },
    { sql: 'DELETE FROM statistics_days WHERE day < ?', rows: [[oldest.day]] },
    { sql: 'DELETE FROM user_visits WHERE day < ?', rows: [[oldest.visit]] },
    { sql: 'DELETE FROM statistics_hours WHERE hour < ?', rows: [[oldest.hour]] },
    {
      sql: 'DELETE FROM statistics_active_rooms WHERE plain_at < ? AND encrypted_at < ?',
      rows: [[oldest.room, oldest.room]],
    },
  ]);
}

/** Returns the number of active users of each day from `firstDay` on. */
export async function activeUsersSince(
  reader: Reader<StatisticsTables>,
  firstDay: number,
): Promise<Map<number, number>> {
  const rows = await reader
    .selectFrom('user_visits')
    .select(({ fn }) => ['day', fn.count<number>('user_id').distinct().as('count')])
    .where('day', '>=', firstDay)
    .groupBy('day')
    .execute();
  return new Map(rows.map(({ day, count }) => [day, Number(count)]));
}

/** Returns the rows of the days from `first` to `last`, both included, in their order. */
export function readDays(
  reader: Reader<StatisticsTables>,
  first: number,
  last: number,
): Promise<StatisticsTables['statistics_days'][]> {
  return reader
    .selectFrom('statistics_days')
    .selectAll()
    .where('day', '>=', first)
    .where('day', '<=', last)
    .orderBy('day')
    .execute();
}
