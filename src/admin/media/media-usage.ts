import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { MediaTables } from '../../media/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { ReadAhead } from '../paging/read-ahead.ts';
import { countRows, type RowsOfPage, readByKeys, readPageByKeys, readRows } from '../paging/read-page.ts';

export const usageOrders = ['user_id', 'displayname', 'media_length', 'media_count'] as const;

/** A value of the parameter `order_by`. */
export type UsageOrder = (typeof usageOrders)[number];

/** Which uploads of which users are counted. Times are milliseconds since the epoch. */
export interface UsageFilter {
  /** The earliest time of an upload. */
  readonly from?: number | undefined;
  /** The latest time of an upload. */
  readonly until?: number | undefined;
  /** A part of the localpart or of the display name. */
  readonly searchTerm?: string | undefined;
}

/** What one user has uploaded in the period of the filter. */
export interface MediaUsageOfUser {
  readonly user_id: string;
  /** JSON string. */
  readonly displayname: string | null;
  readonly media_count: number;
  /** Bytes. */
  readonly media_length: number;
}

/** The users who have uploads and whose user name or display name contains a text. */
export interface UsageMatches {
  readonly total: number;
  /** The ids of these users; absent for more than `maxIds` users. */
  readonly userIds?: readonly string[];
}

/** Maximum number of users whose ids a search collects by default; more matches are only counted. */
const defaultMaxIds = 2_000;

/**
 * Maximum characters of a short search term. It probably matches many users, so they are counted before their ids are
 * collected.
 */
const maxShortTerm = 2;

type Tables = MediaTables & ProfileTables;

const orders: Readonly<Record<UsageOrder, RawBuilder<unknown>>> = {
  user_id: sql`s.user_id`,
  displayname: sql`p.displayname`,
  media_length: sql`s.bytes`,
  media_count: sql`s.files`,
};

/**
 * Reads the numbers of files and bytes that each user has uploaded. The sums of all uploads of a user are stored, with
 * the times of the first and the last upload. A period that includes both times has the same sums. Uploads are added up
 * for a page only when a user has some inside and some outside of the period. When users are sorted by the sums of a
 * period, one query reads the order of the users of many pages.
 */
export class MediaUsage {
  readonly #database: Database;
  readonly #maxIds: number;
  /** Caches the users of a period in the order of their sums, for the next pages. */
  readonly #ahead: ReadAhead;

  constructor(
    deps: { readonly database: Database; readonly caches: CacheRegistry; readonly clock: Clock },
    maxIds: number = defaultMaxIds,
  ) {
    this.#database = deps.database;
    this.#maxIds = maxIds;
    this.#ahead = new ReadAhead(deps);
  }

  /** Reads a page. @param page `matches`: the result of `search`, or only its total, if the filter has a search term */
  async page(
    filter: UsageFilter,
    { by, descending }: { readonly by: UsageOrder; readonly descending: boolean },
    page: { readonly start: PageStart; readonly limit: number; readonly matches?: UsageMatches | undefined },
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    const { userIds } = (await this.#collected(filter, page.matches)) ?? {};
    const isByName = by === 'displayname';
    const isSearch = userIds === undefined && filter.searchTerm !== undefined;
    const skipsRows = 'offset' in page.start && page.start.offset > 0 && filter.searchTerm === undefined;
    const usersWithoutUploads =
      isByName && skipsRows && !hasPeriod(filter) ? await this.#usersWithoutUploads() : undefined;
    let users = this.#sums(filter);
    if (usersWithoutUploads) users = this.#profilesExcept(usersWithoutUploads);
    else if (isByName || isSearch) users = withProfiles(users);
    if (isSearch) users = users.where(isNamed(filter.searchTerm ?? ''));
    if (userIds) users = users.where(isAmong(userIds));
    // Rows with equal values are sorted by key in the same direction, so that one index has both orders.
    const key = isByName ? sql`p.user_id` : orders.user_id;
    const order = { by: orders[by], key, descending, keyDescends: descending };
    const read = (ids: readonly string[]) => this.#read(filter, ids);
    const isComputed = hasPeriod(filter) && (by === 'media_length' || by === 'media_count');
    if (!isComputed) return readPageByKeys(users, order, page, read);
    const { start, limit } = page;
    const list = JSON.stringify([filter, by, descending]);
    const rows = { start, limit: limit + 1 };
    const found = await this.#ahead.rows(list, rows, (atOnce) => readRows(users, order, start, atOnce));
    return readByKeys(found, limit, read);
  }

  /** Reads the ids of all users without uploads; `undefined` for more than `maxIds` users. */
  async #usersWithoutUploads(): Promise<readonly string[] | undefined> {
    const tables = this.#database.scanner<Tables>();
    // The order makes databases merge the two indexes, up to the limit.
    const found = await tables
      .selectFrom('listed_profiles')
      .select('user_id')
      .except(tables.selectFrom('media_usage').select('user_id'))
      .orderBy('user_id')
      .limit(this.#maxIds + 1)
      .execute();
    return found.length > this.#maxIds ? undefined : found.map((row) => row.user_id);
  }

  /**
   * Returns the users with uploads as rows `p` of the profiles. A read at a large offset then only skips rows in the
   * index of names.
   * @param userIds the users without uploads
   */
  #profilesExcept(userIds: readonly string[]): Users {
    const profiles = this.#database.scanner<Tables>().selectFrom('listed_profiles as p');
    const isIncluded =
      userIds.length === 0 ? sql<boolean>`1 = 1` : sql<boolean>`p.user_id not in (${sql.join(userIds)})`;
    return profiles.where(isIncluded) as unknown as Users;
  }

  /** Counts the users who have uploaded media in the period, whatever the search term. */
  count(filter: UsageFilter): Promise<number> {
    return countRows(this.#sums(filter));
  }

  /** Searches the users who have uploaded media by name: collects their ids, or only counts them if they are many. */
  async search(filter: UsageFilter, term: string): Promise<UsageMatches> {
    const maxIds = this.#maxIds;
    const matchingUsers = withProfiles(this.#sums(filter)).where(isNamed(term));
    const counted = term.length <= maxShortTerm ? await countRows(matchingUsers) : 0;
    if (counted > maxIds) return { total: counted };
    const found = await matchingUsers
      .select('s.user_id')
      .limit(maxIds + 1)
      .execute();
    if (found.length > maxIds) return { total: await countRows(matchingUsers) };
    return { total: found.length, userIds: found.map((row) => row.user_id) };
  }

  /** Returns the result of a search, with the ids if the matches are few; `undefined` without a search term. */
  async #collected(filter: UsageFilter, known: UsageMatches | undefined): Promise<UsageMatches | undefined> {
    if (filter.searchTerm === undefined) return undefined;
    const isComplete = known && (known.userIds !== undefined || known.total > this.#maxIds);
    return isComplete ? known : this.search(filter, filter.searchTerm);
  }

  /** Returns the users with uploads, as `s`, with their sums. */
  #sums(filter: UsageFilter): Users {
    const tables = this.#database.scanner<Tables>();
    if (!hasPeriod(filter)) return tables.selectFrom('media_usage as s');
    const { from, until } = filter;
    const isWhollyInPeriod = sql<boolean>`(${isFrom(from, 's.first_at')} and ${isUntil(until, 's.last_at')})`;
    /** Returns a subquery for a value of the uploads of the user `s` in the period. Callers add `limit` or only `)`. */
    const ofUploads = (value: RawBuilder<unknown>) =>
      sql`(select ${value} from local_media m where m.user_id = s.user_id
        and ${isFrom(from, 'm.created_at')} and ${isUntil(until, 'm.created_at')}
        and m.file_id is not null and m.preview_until is null`;
    const sum = (stored: RawBuilder<unknown>, added: RawBuilder<unknown>) =>
      sql<number>`case when ${isWhollyInPeriod} then ${stored} else ${ofUploads(added)}) end`;
    const users = tables
      .selectFrom('media_usage as s')
      .select([
        's.user_id',
        sum(sql`s.files`, sql`count(*)`).as('files'),
        sum(sql`s.bytes`, sql`cast(coalesce(sum(m.size), 0) as bigint)`).as('bytes'),
      ])
      // Excludes users whose uploads are all before or all after the period.
      .where(isFrom(from, 's.last_at'))
      .where(isUntil(until, 's.first_at'))
      // The limit makes databases look up the uploads of each user; for `exists` they would read the uploads of all users.
      .where(sql<boolean>`(${isWhollyInPeriod} or ${ofUploads(sql`1`)} limit 1) is not null)`);
    return tables.selectFrom(users.as('s')) as unknown as Users;
  }

  async #read(
    filter: UsageFilter,
    userIds: readonly string[],
  ): Promise<ReadonlyMap<string, MediaUsageOfUser>> {
    const rows = await this.#sums(filter)
      .leftJoin('profile_fields as n', (join) =>
        join.onRef('n.user_id', '=', 's.user_id').on('n.field', '=', 'displayname'),
      )
      .select(['s.user_id', 'n.value as displayname', 's.files as media_count', 's.bytes as media_length'])
      .where('s.user_id', 'in', userIds)
      .execute();
    return new Map(rows.map((row) => [row.user_id, row]));
  }
}

const hasPeriod = ({ from, until }: UsageFilter) => from !== undefined || until !== undefined;

const isFrom = (from: number | undefined, column: string) =>
  from === undefined ? sql<boolean>`1 = 1` : sql<boolean>`${sql.ref(column)} >= ${from}`;

const isUntil = (until: number | undefined, column: string) =>
  until === undefined ? sql<boolean>`1 = 1` : sql<boolean>`${sql.ref(column)} <= ${until}`;

/** A list of users with their sums `s`, without selected columns. */
type Users = SelectQueryBuilder<Tables & { s: Tables['media_usage'] }, 's', object>;

/** Adds the profiles `p` of the users. */
const withProfiles = (users: Users): Users =>
  users.innerJoin('listed_profiles as p', 'p.user_id', 's.user_id') as unknown as Users;

const isNamed = (term: string) => contains(sql`p.search_text`, term.toLowerCase());

const isAmong = (userIds: readonly string[]) =>
  userIds.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`s.user_id in (${sql.join(userIds)})`;
