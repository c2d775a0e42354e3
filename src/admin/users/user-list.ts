import { type RawBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables, LastSeen } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { readByFlag } from '../paging/read-by-flag.ts';
import {
  countRows,
  type RowsOfPage,
  readByKeys,
  readFewByKeys,
  readPageByKeys,
} from '../paging/read-page.ts';
import { excludedUsers, filteredUsers, isNoneOf, type UserFilter } from './user-filter.ts';
import { readUsersByValue, type ValueOrder, valueOrders } from './users-by-value.ts';

export type { UserFilter } from './user-filter.ts';

export const userOrders = [
  'name',
  'is_guest',
  'admin',
  'user_type',
  'deactivated',
  'shadow_banned',
  'displayname',
  'avatar_url',
  'creation_ts',
  'last_seen_ts',
  'locked',
] as const;

/** A value of the parameter `order_by`. */
export type UserOrder = (typeof userOrders)[number];

/** A user as the list shows it. Times are milliseconds since the epoch, flags 0 or 1. */
export interface ListedUser {
  readonly user_id: string;
  readonly created_at: number;
  readonly user_type: string | null;
  readonly appservice_id: string | null;
  readonly is_guest: number;
  readonly is_admin: number;
  readonly is_deactivated: number;
  readonly is_erased: number;
  readonly is_locked: number;
  readonly is_suspended: number;
  readonly is_shadow_banned: number;
  /** JSON string. */
  readonly displayname: string | null;
  /** JSON string. */
  readonly avatar_url: string | null;
  /** When the user last used a device; 0 or less for users who never did. */
  readonly last_seen_ts: number;
}

type Tables = AccountTables & ProfileTables & DeviceTables;

/** The users whose names contain a text. */
export interface NameMatches {
  readonly total: number;
  /** The ids of these users; absent when there are more users than the search collects. */
  readonly userIds?: readonly string[];
}

/** Maximum number of users whose ids a search collects by default. A text is called common when more names contain it. */
const defaultMaxIds = 2_000;

/**
 * A text with at most this many characters is probably common, so the users who match are counted before their ids are
 * collected.
 */
const shortText = 2;

/** The orders that compare a column of the table of users. */
const orders: Readonly<Record<Exclude<UserOrder, ValueOrder>, RawBuilder<unknown>>> = {
  name: sql`u.user_id`,
  is_guest: sql`u.is_guest`,
  admin: sql`u.is_admin`,
  // The same expression as in the index. PostgreSQL limits the length of values in an index.
  user_type: sql`substr(coalesce(u.user_type, ''), 1, 200)`,
  deactivated: sql`u.is_deactivated`,
  shadow_banned: sql`u.is_shadow_banned`,
  creation_ts: sql`u.created_at`,
  locked: sql`u.is_locked`,
};

/** The orders by a flag. `readByFlag` reads the users of each value in the index of the ids. */
const flags: ReadonlySet<UserOrder> = new Set([
  'is_guest',
  'admin',
  'deactivated',
  'shadow_banned',
  'locked',
]);

const isValueOrder = (order: UserOrder): order is ValueOrder => order in valueOrders;

export interface UserListDeps {
  readonly database: Database;
  /** Flushed before first pages and details are read, so that the last activity is current. */
  readonly lastSeen: Pick<LastSeen, 'flush'>;
}

/** Reads the local users. */
export class UserList {
  readonly #database: Database;
  readonly #lastSeen: Pick<LastSeen, 'flush'>;
  readonly #maxIds: number;

  constructor({ database, lastSeen }: UserListDeps, maxIds: number = defaultMaxIds) {
    this.#database = database;
    this.#lastSeen = lastSeen;
    this.#maxIds = maxIds;
  }

  /** @param page `matches`: the result of `search`, or only its total, if the filter has a name */
  async page(
    filter: UserFilter,
    { by, descending }: { readonly by: UserOrder; readonly descending: boolean },
    page: { readonly start: PageStart; readonly limit: number; readonly matches?: NameMatches | undefined },
  ): Promise<RowsOfPage<ListedUser>> {
    if ('offset' in page.start && page.start.offset === 0) await this.#lastSeen.flush();
    const read = (userIds: readonly string[]) => this.#read(userIds);
    let users = filteredUsers(this.#database, filter);
    if (filter.name !== undefined) {
      const { userIds } = await this.#collected(filter, filter.name, page.matches);
      if (userIds?.length === 0) return { rows: [], next: undefined };
      if (userIds !== undefined) {
        const value = isValueOrder(by) ? valueOrders[by].ofUser : orders[by];
        const found = users.where('u.user_id', 'in', userIds);
        return readFewByKeys(this.#database, found, { by: value, key: orders.name, descending }, page, read);
      }
      users = users.where(isNamed(filter.name));
    }
    if (!isValueOrder(by)) {
      const { start, limit } = page;
      const skipsRows = 'offset' in start && start.offset > 0 && filter.name === undefined;
      const excludedIds = skipsRows ? await excludedUsers(this.#database, filter) : undefined;
      // Databases skip the rows before a distant page without reading them, if the filters are a list of excluded ids.
      if (excludedIds)
        users = filteredUsers(this.#database, { notTypes: [] }).where(isNoneOf(sql`u.user_id`, excludedIds));
      const order = { by: orders[by], key: orders.name, descending };
      if (flags.has(by) && filter.name === undefined) {
        const is = (value: 0 | 1) => sql<boolean>`${orders[by]} = ${sql.lit(value)}`;
        const byFlag = { is, key: orders.name, descending };
        return readByKeys(await readByFlag(this.#database, users, byFlag, start, limit + 1), limit, read);
      }
      return readPageByKeys(users, order, page, read);
    }
    const database = this.#database;
    const excluded = async () => (filter.name === undefined ? excludedUsers(database, filter) : undefined);
    return readUsersByValue({ database, users, excluded, by: valueOrders[by], descending }, page, read);
  }

  /**
   * Counts the users that the filter selects. If the filter excludes few users, subtracts the number of excluded users
   * from the number of all users.
   */
  async count(filter: UserFilter): Promise<number> {
    if (filter.name !== undefined) return (await this.search(filter, filter.name)).total;
    const excluded = await excludedUsers(this.#database, filter);
    if (excluded === undefined) return countRows(filteredUsers(this.#database, filter));
    return (await countRows(filteredUsers(this.#database, { notTypes: [] }))) - excluded.length;
  }

  /**
   * Searches the users whose localparts or display names contain a text: collects their ids, or only counts them if they
   * are many.
   */
  async search(filter: UserFilter, name: string): Promise<NameMatches> {
    const excluded = await excludedUsers(this.#database, filter);
    const matchingProfiles = this.#database
      .scanner<Tables>()
      .selectFrom('listed_profiles as p')
      .where(contains(sql`p.search_text`, name.toLowerCase()));
    const isSelected = () =>
      sql<boolean>`exists ${filteredUsers(this.#database, filter)
        .select('u.user_id')
        .whereRef('u.user_id', '=', sql.ref('p.user_id'))}`;
    const selectedProfiles = matchingProfiles.where(
      excluded ? isNoneOf(sql`p.user_id`, excluded) : isSelected(),
    );
    const collect = async () => {
      const rows = await selectedProfiles
        .select('p.user_id')
        .limit(this.#maxIds + 1)
        .execute();
      return rows.length > this.#maxIds ? undefined : rows.map(({ user_id: userId }) => userId);
    };
    const isShort = name.length <= shortText;
    const collected = isShort ? undefined : await collect();
    if (collected !== undefined) return { total: collected.length, userIds: collected };
    const total = await countRows(selectedProfiles);
    const userIds = isShort && total <= this.#maxIds ? await collect() : undefined;
    return userIds === undefined ? { total } : { total: userIds.length, userIds };
  }

  /** Returns when a user last used a device, in milliseconds since the epoch; `undefined` for users who never did. */
  async lastSeen(userId: string): Promise<number | undefined> {
    await this.#lastSeen.flush();
    const row = await this.#database
      .reader<DeviceTables>()
      .selectFrom('user_activity')
      .select('last_seen_at')
      .where('user_id', '=', userId)
      .executeTakeFirst();
    return row?.last_seen_at || undefined;
  }

  async #read(userIds: readonly string[]): Promise<ReadonlyMap<string, ListedUser>> {
    const rows = await this.#database
      .scanner<Tables>()
      .selectFrom('users as u')
      .leftJoin('profile_fields as n', (join) =>
        join.onRef('n.user_id', '=', 'u.user_id').on('n.field', '=', 'displayname'),
      )
      .leftJoin('profile_fields as a', (join) =>
        join.onRef('a.user_id', '=', 'u.user_id').on('a.field', '=', 'avatar_url'),
      )
      .select([
        'u.user_id',
        'u.created_at',
        'u.user_type',
        'u.appservice_id',
        'u.is_guest',
        'u.is_admin',
        'u.is_deactivated',
        'u.is_erased',
        'u.is_locked',
        'u.is_suspended',
        'u.is_shadow_banned',
        'n.value as displayname',
        'a.value as avatar_url',
      ])
      .select(sql<number>`${valueOrders.last_seen_ts.ofUser}`.as('last_seen_ts'))
      .where('u.user_id', 'in', userIds)
      .execute();
    return new Map(rows.map((row) => [row.user_id, row]));
  }

  /** Returns the result of a search, with the ids if the matches are few. */
  async #collected(
    filter: UserFilter,
    name: string,
    knownMatches: NameMatches | undefined,
  ): Promise<NameMatches> {
    const isComplete =
      knownMatches && (knownMatches.userIds !== undefined || knownMatches.total > this.#maxIds);
    return isComplete ? knownMatches : this.search(filter, name);
  }
}

/**
 * Whether a name of the user `u` contains a common text. Reads the names by a scalar subquery, because with `exists`
 * PostgreSQL would first read the names of all users.
 */
const isNamed = (name: string) =>
  contains(
    sql`(select p.search_text from listed_profiles p where p.user_id = u.user_id)`,
    name.toLowerCase(),
  );
