import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { MediaTables } from '../../media/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPageByKeys } from '../paging/read-page.ts';

export const usageOrders = ['user_id', 'displayname', 'media_length', 'media_count'] as const;

export type UsageOrder = (typeof usageOrders)[number];

/** The filters of the uploads that are counted. Times are milliseconds since the epoch. */
export interface UsageFilter {
  readonly from?: number | undefined;
  readonly until?: number | undefined;
  /** A part of the localpart or of the display name. */
  readonly searchTerm?: string | undefined;
}

export interface MediaUsageOfUser {
  readonly user_id: string;
  /** JSON string. */
  readonly displayname: string | null;
  readonly media_count: number;
  /** Bytes. */
  readonly media_length: number;
}

/** The users with uploads whose names contain a text. */
export interface UsageMatches {
  readonly total: number;
  /** Their ids; absent if they are many. */
  readonly userIds?: readonly string[];
}

/** What decides how a page is read. */
interface Bounds {
  /** Maximum number of users whose ids a search collects. A text that more names contain is common. */
  readonly maxIds: number;
  /** Maximum number of uploads of a period that are added up before their users are sorted by id or name. */
  readonly maxUploads: number;
}

const defaultBounds: Bounds = { maxIds: 2_000, maxUploads: 20_000 };

type Tables = MediaTables & ProfileTables;

const orders: Readonly<Record<UsageOrder, RawBuilder<unknown>>> = {
  user_id: sql`s.user_id`,
  displayname: sql`p.displayname`,
  media_length: sql`s.bytes`,
  media_count: sql`s.files`,
};

/**
 * Reads the files and bytes that each user has uploaded. Sums of all times are stored. Sums of a period are added up for
 * each page, which costs time in proportion to the uploads of the period.
 */
export class MediaUsage {
  readonly #database: Database;
  readonly #bounds: Bounds;

  constructor({ database }: { readonly database: Database }, bounds = defaultBounds) {
    this.#database = database;
    this.#bounds = bounds;
  }

  /** @param page `matches`: the result of `search`, or only its total, if the filter has a search term */
  async page(
    filter: UsageFilter,
    { by, descending }: { readonly by: UsageOrder; readonly descending: boolean },
    page: { readonly start: PageStart; readonly limit: number; readonly matches?: UsageMatches | undefined },
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    const { userIds } = (await this.#collected(filter, page.matches)) ?? {};
    const isByName = by === 'displayname';
    const isSearch = userIds === undefined && filter.searchTerm !== undefined;
    const addsUpFirst = by === 'media_length' || by === 'media_count' || (await this.#isShort(filter));
    let users = addsUpFirst ? this.#sums(filter) : this.#uploaders(filter);
    if (isByName || isSearch) users = withProfiles(users);
    if (isSearch) users = users.where(isNamed(filter.searchTerm ?? ''));
    if (userIds) users = users.where(isAmong(userIds));
    // The keys of equal rows have the direction of the order, so that an index has both.
    const key = isByName ? sql`p.user_id` : orders.user_id;
    const order = { by: orders[by], key, descending, keyDescends: descending };
    return readPageByKeys(users, order, page, (ids) => this.#read(filter, ids));
  }

  /** Counts the users who have uploaded media. */
  count(filter: UsageFilter): Promise<number> {
    return countRows(this.#sums(filter));
  }

  /** Searches the users who have uploaded media by name: collects their ids, or only counts them if they are many. */
  async search(filter: UsageFilter, term: string): Promise<UsageMatches> {
    const { maxIds } = this.#bounds;
    const named = withProfiles(this.#sums(filter)).where(isNamed(term));
    const found = await named
      .select('s.user_id')
      .limit(maxIds + 1)
      .execute();
    if (found.length > maxIds) return { total: await countRows(named) };
    return { total: found.length, userIds: found.map((row) => row.user_id) };
  }

  /** Returns the result of a search, with the ids if the matches are few; `undefined` without a search term. */
  async #collected(filter: UsageFilter, known: UsageMatches | undefined): Promise<UsageMatches | undefined> {
    if (filter.searchTerm === undefined) return undefined;
    const isComplete = known && (known.userIds !== undefined || known.total > this.#bounds.maxIds);
    return isComplete ? known : this.search(filter, filter.searchTerm);
  }

  /** Whether the sums of the filter are stored, or those of few uploads. */
  async #isShort(filter: UsageFilter): Promise<boolean> {
    if (!hasPeriod(filter)) return true;
    const some = this.#uploads(filter)
      .select('m.user_id')
      .limit(this.#bounds.maxUploads + 1);
    const found = await countRows(this.#database.scanner<Tables>().selectFrom(some.as('some')));
    return found <= this.#bounds.maxUploads;
  }

  /** The sums `s` of the users with uploads. */
  #sums(filter: UsageFilter): Users {
    const tables = this.#database.scanner<Tables>();
    if (!hasPeriod(filter)) return tables.selectFrom('media_usage as s');
    const sums = this.#uploads(filter)
      .select(['m.user_id', ...sumsOfUploads])
      .groupBy('m.user_id');
    return tables.selectFrom(sums.as('s')) as unknown as Users;
  }

  /** The users `s` with uploads of the period, in the order of an index. */
  #uploaders(filter: UsageFilter): Users {
    // The sum keeps databases from reading all uploads of the period for each user.
    const uploads = this.#uploads(filter, sql`m.created_at + 0`)
      .select('m.media_id')
      .where('m.user_id', '=', sql<string>`s.user_id`);
    return this.#database
      .scanner<Tables>()
      .selectFrom('media_usage as s')
      .where(sql<boolean>`exists ${uploads}`);
  }

  /** The uploads `m` of the period. */
  #uploads({ from, until }: UsageFilter, time = sql`m.created_at`) {
    let uploads = this.#database
      .scanner<Tables>()
      .selectFrom('local_media as m')
      .where('m.file_id', 'is not', null)
      .where('m.preview_until', 'is', null);
    if (from !== undefined) uploads = uploads.where(sql<boolean>`${time} >= ${from}`);
    if (until !== undefined) uploads = uploads.where(sql<boolean>`${time} <= ${until}`);
    return uploads;
  }

  async #read(
    filter: UsageFilter,
    userIds: readonly string[],
  ): Promise<ReadonlyMap<string, MediaUsageOfUser>> {
    const tables = this.#database.scanner<Tables>();
    const sums = hasPeriod(filter)
      ? this.#uploads(filter, sql`m.created_at + 0`)
          .select(['m.user_id', ...sumsOfUploads])
          .where('m.user_id', 'in', userIds)
          .groupBy('m.user_id')
      : tables
          .selectFrom('media_usage as m')
          .select(['m.user_id', 'm.files', 'm.bytes'])
          .where('m.user_id', 'in', userIds);
    const rows = await tables
      .selectFrom(sums.as('s'))
      .leftJoin('profile_fields as n', (join) =>
        join.onRef('n.user_id', '=', 's.user_id').on('n.field', '=', 'displayname'),
      )
      .select(['s.user_id', 'n.value as displayname', 's.files as media_count', 's.bytes as media_length'])
      .execute();
    return new Map(rows.map((row) => [row.user_id, row]));
  }
}

/** The figures of the uploads `m` of one user. */
const sumsOfUploads = [
  sql<number>`count(*)`.as('files'),
  sql<number>`cast(coalesce(sum(m.size), 0) as bigint)`.as('bytes'),
] as const;

const hasPeriod = ({ from, until }: UsageFilter) => from !== undefined || until !== undefined;

/** A list of users with their sums `s`, without selected columns. */
type Users = SelectQueryBuilder<Tables & { s: Tables['media_usage'] }, 's', object>;

/** Adds the profiles `p` of the users. */
const withProfiles = (users: Users): Users =>
  users.innerJoin('listed_profiles as p', 'p.user_id', 's.user_id') as unknown as Users;

const isNamed = (term: string) => contains(sql`p.search_text`, term.toLowerCase());

const isAmong = (userIds: readonly string[]) =>
  userIds.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`s.user_id in (${sql.join(userIds)})`;
