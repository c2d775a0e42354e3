import { type RawBuilder, sql } from 'kysely';
import type { AccountTables } from '../../accounts/index.ts';
import type { DeviceTables } from '../../devices/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains, isLike } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

/** Which users a list contains. Absent filters select all users. */
export interface UserFilter {
  /** A part of the localpart or of the display name. */
  readonly name?: string | undefined;
  /** A part of the user id. */
  readonly userId?: string | undefined;
  readonly guests?: boolean | undefined;
  readonly admins?: boolean | undefined;
  readonly deactivated?: boolean | undefined;
  readonly locked?: boolean | undefined;
  /** User types to leave out; an empty string stands for users without a type. */
  readonly notTypes: readonly string[];
}

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
  readonly last_seen_ts: number;
}

type Tables = AccountTables & ProfileTables & DeviceTables;

const lastSeen = sql<number>`coalesce((select max(d.last_seen_at) from devices d where d.user_id = u.user_id), 0)`;

const orders: Readonly<Record<UserOrder, RawBuilder<unknown>>> = {
  name: sql`u.user_id`,
  is_guest: sql`u.is_guest`,
  admin: sql`u.is_admin`,
  user_type: sql`coalesce(u.user_type, '')`,
  deactivated: sql`u.is_deactivated`,
  shadow_banned: sql`u.is_shadow_banned`,
  displayname: sql`coalesce(n.value, '')`,
  avatar_url: sql`coalesce(a.value, '')`,
  creation_ts: sql`u.created_at`,
  last_seen_ts: lastSeen,
  locked: sql`u.is_locked`,
};

/** Reads the local users. */
export class UserList {
  readonly #database: Database;
  readonly #serverName: string;

  constructor({ database, serverName }: { readonly database: Database; readonly serverName: string }) {
    this.#database = database;
    this.#serverName = serverName;
  }

  page(
    filter: UserFilter,
    order: { readonly by: UserOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedUser>> {
    const users = this.#filtered(filter)
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
      .select(lastSeen.as('last_seen_ts'));
    return readPage(
      users,
      { by: orders[order.by], key: orders.name, descending: order.descending },
      start,
      limit,
    );
  }

  /** Counts the users that the filter selects. */
  count(filter: UserFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  /** Returns when a user was last active, in milliseconds since the epoch; `undefined` if no device was ever used. */
  async lastSeen(userId: string): Promise<number | undefined> {
    const row = await this.#database
      .reader<DeviceTables>()
      .selectFrom('devices')
      .select(({ fn }) => fn.max('last_seen_at').as('at'))
      .where('user_id', '=', userId)
      .executeTakeFirst();
    return row?.at ?? undefined;
  }

  #filtered({ name, userId, guests, admins, deactivated, locked, notTypes }: UserFilter) {
    let query = this.#database
      .scanner<Tables>()
      .selectFrom('users as u')
      .leftJoin('profile_fields as n', (join) =>
        join.onRef('n.user_id', '=', 'u.user_id').on('n.field', '=', 'displayname'),
      )
      .leftJoin('profile_fields as a', (join) =>
        join.onRef('a.user_id', '=', 'u.user_id').on('a.field', '=', 'avatar_url'),
      );
    if (guests !== undefined) query = query.where('u.is_guest', '=', guests ? 1 : 0);
    if (admins !== undefined) query = query.where('u.is_admin', '=', admins ? 1 : 0);
    if (deactivated !== undefined) query = query.where('u.is_deactivated', '=', deactivated ? 1 : 0);
    if (locked !== undefined) query = query.where('u.is_locked', '=', locked ? 1 : 0);
    const types = notTypes.filter((type) => type !== '');
    if (types.length > 0) query = query.where(sql<string>`coalesce(u.user_type, '')`, 'not in', types);
    if (types.length < notTypes.length) query = query.where('u.user_type', 'is not', null);
    if (name !== undefined) query = query.where(this.#isNamed(name));
    else if (userId !== undefined) {
      query = query.where(contains(sql`u.folded_id`, userId.toLowerCase()));
    }
    return query;
  }

  #isNamed(name: string): RawBuilder<boolean> {
    const localpart = ['@%', name.toLowerCase(), '%:', this.#serverName.toLowerCase()];
    const displayName = JSON.stringify(name).slice(1, -1);
    return sql<boolean>`(${isLike(sql`u.folded_id`, localpart)}
      or ${contains(sql`coalesce(n.value, '')`, displayName)}
      or ${contains(sql`lower(coalesce(n.value, ''))`, displayName.toLowerCase())})`;
  }
}
