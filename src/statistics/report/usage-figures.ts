import type { Database } from '../../kernel/database/index.ts';
import type { StatisticsTables } from '../tables.ts';
import { day, dayOf, hourOf } from '../utc-days.ts';
import type { ClientKind } from '../visits/client-kind.ts';

/** Numbers of the last 24 hours, under the names of the fields in the reference server's reports. */
export interface RecentMessages {
  readonly daily_messages: number;
  readonly daily_sent_messages: number;
  readonly daily_e2ee_messages: number;
  readonly daily_sent_e2ee_messages: number;
  readonly daily_active_rooms: number;
  readonly daily_active_e2ee_rooms: number;
}

/** Counts messages of the current hour and the 23 before it, and rooms with messages in the last 24 hours. */
export async function recentMessages(database: Database, now: number): Promise<RecentMessages> {
  const reader = database.scanner<StatisticsTables>();
  const sums = await reader
    .selectFrom('statistics_hours')
    .select(({ fn }) => [
      fn.sum<number | string | null>('plain').as('plain'),
      fn.sum<number | string | null>('local_plain').as('localPlain'),
      fn.sum<number | string | null>('encrypted').as('encrypted'),
      fn.sum<number | string | null>('local_encrypted').as('localEncrypted'),
    ])
    .where('hour', '>', hourOf(now) - 24)
    .executeTakeFirstOrThrow();
  const rooms = async (column: 'plain_at' | 'encrypted_at') => {
    const { count } = await reader
      .selectFrom('statistics_active_rooms')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(column, '>', now - day)
      .executeTakeFirstOrThrow();
    return Number(count);
  };
  return {
    daily_messages: Number(sums.plain ?? 0),
    daily_sent_messages: Number(sums.localPlain ?? 0),
    daily_e2ee_messages: Number(sums.encrypted ?? 0),
    daily_sent_e2ee_messages: Number(sums.localEncrypted ?? 0),
    daily_active_rooms: await rooms('plain_at'),
    daily_active_e2ee_rooms: await rooms('encrypted_at'),
  };
}

/** Returns the number of users who were active in the last 30 days. */
export async function monthlyActiveUsers(database: Database, now: number): Promise<number> {
  const { count } = await database
    .scanner<StatisticsTables>()
    .selectFrom('user_visits')
    .select(({ fn }) => fn.count<number>('user_id').distinct().as('count'))
    .where('day', '>', dayOf(now) - 30)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Minimum number of days between the first and the last request of a returning user. */
const returningDays = 30;

/** Number of days whose requests are considered, the day of the report included. */
const consideredDays = 60;

/**
 * Counts returning users: users with requests at least 30 days apart within the last 60 days. Counts them for all
 * clients together (`all`), and for each kind of client.
 */
export async function returningUsers(
  database: Database,
  now: number,
): Promise<ReadonlyMap<'all' | ClientKind, number>> {
  const reader = database.scanner<StatisticsTables>();
  const first = dayOf(now) - consideredDays;
  const returned = await reader
    .selectFrom(
      reader
        .selectFrom('user_visits')
        .select(({ fn }) => ['user_id', 'client', fn.max('day').as('last'), fn.min('day').as('first')])
        .where('day', '>', first)
        .groupBy(['user_id', 'client'])
        .as('visits'),
    )
    .select(({ fn }) => ['client', fn.countAll<number>().as('count')])
    .whereRef('last', '>=', ({ eb }) => eb('first', '+', returningDays))
    .groupBy('client')
    .execute();
  const all = await reader
    .selectFrom(
      reader
        .selectFrom('user_visits')
        .select('user_id')
        .where('day', '>', first)
        .groupBy('user_id')
        .having(({ fn, eb }) => eb(fn.max('day'), '>=', eb(fn.min('day'), '+', returningDays)))
        .as('users'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  const counts = new Map<'all' | ClientKind, number>([['all', Number(all.count)]]);
  for (const { client, count } of returned) counts.set(client as ClientKind, Number(count));
  return counts;
}
