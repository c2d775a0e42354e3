import { type RawBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { type RowsOfPage, readByKeys, readRows } from '../paging/read-page.ts';
import { isNoneOf, type UserQuery } from './user-filter.ts';

type Tables = AccountTables & ProfileTables & DeviceTables;

/**
 * A value by which users are sorted, in a table besides `users`. This table has one row for each user
 * (`userListChecks`).
 */
export interface UserValue {
  /** The value of the user `u`. */
  readonly ofUser: RawBuilder<unknown>;
  /** The values of all users, as `value` and `user_id`. Databases find them in an index in the order of `value`. */
  readonly rows: RawBuilder<unknown>;
}

const userValue = (table: string, column: string, defaultValue: string): UserValue => {
  const [from, value] = [sql.table(table), sql.ref(column)];
  return {
    ofUser: sql`coalesce((select ${value} from ${from} where user_id = u.user_id), ${sql.raw(defaultValue)})`,
    rows: sql`(select ${value} as value, user_id from ${from})`,
  };
};

/** The values of other tables by which lists of users can be sorted. */
export const valueOrders = {
  displayname: userValue('listed_profiles', 'displayname', "''"),
  avatar_url: userValue('listed_profiles', 'avatar_url', "''"),
  last_seen_ts: userValue('user_activity', 'last_seen_at', '0'),
} as const satisfies Readonly<Record<string, UserValue>>;

export type ValueOrder = keyof typeof valueOrders;

/** The users of a list that is read in the order of a value. */
export interface UsersByValue {
  readonly database: Database;
  readonly users: UserQuery;
  /**
   * Reads the ids of all users whom the list does not contain; `undefined` when there are too many of these users.
   * Databases exclude a few ids from many rows faster than they look up the user of each row.
   */
  readonly excluded: () => Promise<readonly string[] | undefined>;
  readonly by: UserValue;
  readonly descending: boolean;
}

/** Reads one page of users in the order of a value. */
export async function readUsersByValue<Row>(
  list: UsersByValue,
  { start, limit }: { readonly start: PageStart; readonly limit: number },
  read: (userIds: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): Promise<RowsOfPage<Row>> {
  const order = { by: sql`v.value`, key: sql`v.user_id`, descending: list.descending };
  const excluded = 'offset' in start ? await list.excluded() : undefined;
  return readByKeys(await readRows(withValue(list, excluded), order, start, limit + 1), limit, read);
}

/**
 * Returns the values of the users of a list.
 * @param excluded ids of the users whom the list does not contain; absent: each user is looked up
 */
function withValue(
  { database, users, by }: UsersByValue,
  excluded: readonly string[] | undefined,
): UserQuery {
  const values = sql<{ value: string | number; user_id: string }>`${by.rows}`.as('v');
  if (excluded === undefined)
    return users.innerJoin(values, (join) => join.onRef('v.user_id', '=', 'u.user_id')) as UserQuery;
  const all = database.scanner<Tables>().selectFrom(values);
  return all.where(isNoneOf(sql`v.user_id`, excluded)) as unknown as UserQuery;
}
