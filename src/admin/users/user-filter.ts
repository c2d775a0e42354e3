import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains, withoutNul } from '../paging/contains.ts';

/** The filters of a list of users. Absent filters select all users. */
export interface UserFilter {
  /** A part of the localpart or of the display name. */
  readonly name?: string | undefined;
  /** A part of the user id; ignored when `name` is set. */
  readonly userId?: string | undefined;
  /** `true`: only guests; `false`: no guests. The next three filters work in the same way. */
  readonly guests?: boolean | undefined;
  readonly admins?: boolean | undefined;
  readonly deactivated?: boolean | undefined;
  readonly locked?: boolean | undefined;
  /** The types of users who are left out; an empty string leaves out the users without a type. */
  readonly notTypes: readonly string[];
}

type Tables = AccountTables & ProfileTables & DeviceTables & { u: AccountTables['users'] };

/** The users `u` that a list contains, without selected columns. */
export type UserQuery = SelectQueryBuilder<Tables, 'u', object>;

/**
 * The columns of filters. SQLite uses the partial index `users_unlisted` only for conditions in the order of the index, so
 * the first three columns have this order.
 */
const flags = {
  deactivated: sql.ref('u.is_deactivated'),
  locked: sql.ref('u.is_locked'),
  guests: sql.ref('u.is_guest'),
  admins: sql.ref('u.is_admin'),
} as const;

const flagNames = Object.keys(flags) as (keyof typeof flags)[];

/** Selects the users `u` by all filters except `name`. */
export function filteredUsers(database: Database, filter: UserFilter): UserQuery {
  let query: UserQuery = database
    .scanner<AccountTables & ProfileTables & DeviceTables>()
    .selectFrom('users as u');
  for (const name of flagNames) {
    const wanted = filter[name];
    if (wanted !== undefined) query = query.where(flags[name], '=', wanted ? 1 : 0);
  }
  const { types, excludesUntyped } = typesOf(filter);
  if (types.length > 0) query = query.where(sql<boolean>`not ${isOfType(types)}`);
  if (excludesUntyped) query = query.where('u.user_type', 'is not', null);
  if (filter.name === undefined && filter.userId !== undefined) {
    query = query.where(contains(sql`u.folded_id`, filter.userId.toLowerCase()));
  }
  return query;
}

/** Maximum number of users to exclude by their ids. */
const maxExcluded = 2_000;

/**
 * Reads the ids of the users whom the filters exclude; the filter `name` is ignored. Returns `undefined` if there are
 * or could be more than `maxExcluded`, for example all users without administrator rights.
 */
export async function excludedUsers(
  database: Database,
  filter: UserFilter,
): Promise<readonly string[] | undefined> {
  const { types, excludesUntyped } = typesOf(filter);
  const hasUserId = filter.name === undefined && filter.userId !== undefined;
  if (excludesUntyped || hasUserId || flagNames.some((name) => filter[name] === true)) return undefined;
  const conditions = flagNames
    .filter((name) => filter[name] === false)
    .map((name) => sql<boolean>`${flags[name]} = 1`);
  if (types.length > 0) conditions.push(isOfType(types));
  if (conditions.length === 0) return [];
  const excluded = await database
    .scanner<AccountTables>()
    .selectFrom('users as u')
    .select('u.user_id')
    .where(sql<boolean>`(${sql.join(conditions, sql` or `)})`)
    .limit(maxExcluded + 1)
    .execute();
  return excluded.length > maxExcluded ? undefined : excluded.map(({ user_id: userId }) => userId);
}

/** Whether a user id is not among `userIds`. */
export const isNoneOf = (column: RawBuilder<unknown>, userIds: readonly string[]): RawBuilder<boolean> =>
  userIds.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`${column} not in (${sql.join(userIds)})`;

function typesOf({ notTypes }: UserFilter) {
  const types = notTypes.filter((type) => type !== '').map(withoutNul);
  return { types, excludesUntyped: types.length < notTypes.length };
}

const isOfType = (types: readonly string[]) =>
  sql<boolean>`coalesce(u.user_type, '') in (${sql.join(types)})`;
