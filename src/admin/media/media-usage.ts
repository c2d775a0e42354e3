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

/** The users with uploads whose user name or display name contains a text. */
export interface UsageMatches {
  readonly total: number;
  /** Their ids; absent if they are more than `maxIds`. */
  readonly userIds?: readonly string[];
}

/** What decides how a page is read. */
interface Bounds {
  /** Maximum number of users whose ids a search collects; more matches are only counted. */
  readonly maxIds: number;
  /** Maximum number of uploads of a short period, whose uploads are read in the order of time. */
  readonly maxUploads: number;
}

/** A long period is read by user if at most this many times `maxUploads` uploads are earlier, and as many are later. */
const maxOutsideFactor = 10;

/**
 * What is read for the users of a filter: the stored sums, the uploads of the period in the order of time, or the uploads
 * of all times in the order of their users, without those outside of the period.
 */
type Reading = 'stored' | 'by time' | 'by user';

/** A filter with the reading that is the fastest for it. */
interface PlannedFilter extends UsageFilter {
  readonly reading: Reading;
}

const defaultBounds: Bounds = { maxIds: 2_000, maxUploads: 20_000 };

/** Maximum characters of a text that is probably common: its users are counted before their ids are collected. */
const maxShortTerm = 2;

type Tables = MediaTables & ProfileTables;

const orders: Readonly<Record<UsageOrder, RawBuilder<unknown>>> = {
  user_id: sql`s.user_id`,
  displayname: sql`p.displayname`,
  media_length: sql`s.bytes`,
  media_count: sql`s.files`,
};

/**
 * Reads the files and bytes that each user has uploaded. Sums of all times are stored. Sums of a period are added up for
 * each page, which costs time in proportion to the uploads of the period, unless it includes all uploads.
 */
export class MediaUsage {
  readonly #database: Database;
  readonly #bounds: Bounds;
  /** The plan of each filter object, which the page and the count of a request share. */
  readonly #plans = new WeakMap<UsageFilter, Promise<PlannedFilter>>();

  constructor({ database }: { readonly database: Database }, bounds = defaultBounds) {
    this.#database = database;
    this.#bounds = bounds;
  }

  /** @param page `matches`: the result of `search`, or only its total, if the filter has a search term */
  async page(
    given: UsageFilter,
    { by, descending }: { readonly by: UsageOrder; readonly descending: boolean },
    page: { readonly start: PageStart; readonly limit: number; readonly matches?: UsageMatches | undefined },
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    const filter = await this.#plan(given);
    const { userIds } = (await this.#collected(filter, page.matches)) ?? {};
    const isByName = by === 'displayname';
    const isSearch = userIds === undefined && filter.searchTerm !== undefined;
    const readsSums = by === 'media_length' || by === 'media_count' || filter.reading !== 'by user';
    let users = readsSums ? this.#sums(filter, by) : this.#uploaders(filter);
    if (isByName || isSearch) users = withProfiles(users);
    if (isSearch) users = users.where(isNamed(filter.searchTerm ?? ''));
    if (userIds) users = users.where(isAmong(userIds));
    // The keys of equal rows have the direction of the order, so that an index has both.
    const key = isByName ? sql`p.user_id` : orders.user_id;
    const order = { by: orders[by], key, descending, keyDescends: descending };
    return readPageByKeys(users, order, page, (ids) => this.#read(filter, ids));
  }

  /** Counts the users who have uploaded media. */
  async count(filter: UsageFilter): Promise<number> {
    return countRows(this.#sums(await this.#plan(filter)));
  }

  /** Searches the users who have uploaded media by name: collects their ids, or only counts them if they are many. */
  async search(filter: UsageFilter, term: string): Promise<UsageMatches> {
    const { maxIds } = this.#bounds;
    const named = withProfiles(this.#sums(await this.#plan(filter))).where(isNamed(term));
    const counted = term.length <= maxShortTerm ? await countRows(named) : 0;
    if (counted > maxIds) return { total: counted };
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

  #plan(filter: UsageFilter): Promise<PlannedFilter> {
    const plan = this.#plans.get(filter) ?? this.#makePlan(filter);
    this.#plans.set(filter, plan);
    return plan;
  }

  /** Leaves out limits of the period that exclude no upload, and chooses what is read. */
  async #makePlan({ from, until, ...filter }: UsageFilter): Promise<PlannedFilter> {
    const before = from === undefined ? undefined : sql<boolean>`m.created_at < ${from}`;
    const after = until === undefined ? undefined : sql<boolean>`m.created_at > ${until}`;
    const [earlier, later] = await this.#haveMore(0, [before, after]);
    if (!earlier && !later) return { ...filter, reading: 'stored' };
    const period = { from: earlier ? from : undefined, until: later ? until : undefined };
    const { maxUploads } = this.#bounds;
    const [isLong] = await this.#haveMore(maxUploads, [inPeriodByIndex(period)]);
    const isPart =
      !isLong || (await this.#haveMore(maxOutsideFactor * maxUploads, [before, after])).includes(true);
    return { ...filter, ...period, reading: isPart ? 'by time' : 'by user' };
  }

  /** Whether more than `count` uploads meet each condition; `false` for an absent one. */
  async #haveMore(
    count: number,
    conditions: readonly (RawBuilder<boolean> | undefined)[],
  ): Promise<boolean[]> {
    const found = conditions.map((condition) => {
      if (condition === undefined) return sql`0`;
      const next = this.#uploads().select('m.created_at').where(condition).orderBy('m.created_at');
      return sql`(select count(*) from ${next.limit(1).offset(count)} next)`;
    });
    const columns = found.map((value, index) => sql`${value} as ${sql.ref(`c${index}`)}`);
    const { rows } = await sql<Record<string, number | string>>`select ${sql.join(columns)}`.execute(
      this.#database.scanner<Tables>(),
    );
    return conditions.map((_, index) => Number(rows[0]?.[`c${index}`]) > 0);
  }

  /** The sums `s` of the users with uploads. @param by the sum that is needed; by default none is */
  #sums(filter: PlannedFilter, by?: UsageOrder): Users {
    const tables = this.#database.scanner<Tables>();
    if (filter.reading === 'stored') return tables.selectFrom('media_usage as s');
    const sum = by === 'media_length' ? [bytesOfUploads] : by === 'media_count' ? [filesOfUploads] : [];
    let uploads = this.#uploads().select(['m.user_id', 'm.size']);
    if (filter.reading === 'by time') uploads = uploads.where(inPeriodByIndex(filter));
    else {
      const inOrder = uploads
        .where(inPeriodWithoutIndex(filter))
        .orderBy('m.user_id')
        .orderBy('m.created_at');
      // The limit makes PostgreSQL read the uploads in the order of their index, which only this index has.
      uploads = inOrder.limit(Number.MAX_SAFE_INTEGER);
    }
    const sums = tables
      .selectFrom(uploads.as('m'))
      .select(['m.user_id', ...sum])
      .groupBy('m.user_id');
    return tables.selectFrom(sums.as('s')) as unknown as Users;
  }

  /** The users `s` with uploads of the period, in the order of an index. */
  #uploaders(filter: PlannedFilter): Users {
    const uploads = this.#uploads()
      .select('m.media_id')
      .where('m.user_id', '=', sql<string>`s.user_id`)
      .where(inPeriodWithoutIndex(filter));
    return this.#database
      .scanner<Tables>()
      .selectFrom('media_usage as s')
      .where(sql<boolean>`exists ${uploads}`);
  }

  /** The uploads `m` of all times. */
  #uploads() {
    return this.#database
      .scanner<Tables>()
      .selectFrom('local_media as m')
      .where('m.file_id', 'is not', null)
      .where('m.preview_until', 'is', null);
  }

  async #read(
    filter: PlannedFilter,
    userIds: readonly string[],
  ): Promise<ReadonlyMap<string, MediaUsageOfUser>> {
    const tables = this.#database.scanner<Tables>();
    const sums =
      filter.reading !== 'stored'
        ? this.#uploads()
            .select(['m.user_id', filesOfUploads, exactBytesOfUploads])
            .where('m.user_id', 'in', userIds)
            .where(inPeriodWithoutIndex(filter))
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

const filesOfUploads = sql<number>`count(*)`.as('files');

/** Bytes to sort by, exact below 2^53; PostgreSQL adds up doubles in half the time of integers. */
const bytesOfUploads = sql<number>`coalesce(sum(cast(m.size as double precision)), 0)`.as('bytes');

const exactBytesOfUploads = sql<number>`cast(coalesce(sum(m.size), 0) as bigint)`.as('bytes');

/** The conditions of a period, which databases find in an index of the times. */
function inPeriodByIndex({ from, until }: UsageFilter): RawBuilder<boolean> {
  return allOf([
    ...(from === undefined ? [] : [sql<boolean>`m.created_at >= ${from}`]),
    ...(until === undefined ? [] : [sql<boolean>`m.created_at <= ${until}`]),
  ]);
}

/** The conditions of a period with `is true`, which keeps databases from using an index of the times. */
function inPeriodWithoutIndex({ from, until }: UsageFilter): RawBuilder<boolean> {
  return allOf([
    ...(from === undefined ? [] : [sql<boolean>`(m.created_at >= ${from}) is true`]),
    ...(until === undefined ? [] : [sql<boolean>`(m.created_at <= ${until}) is true`]),
  ]);
}

const allOf = (conditions: readonly RawBuilder<boolean>[]) =>
  sql<boolean>`(${sql.join(conditions, sql` and `)})`;

/** A list of users with their sums `s`, without selected columns. */
type Users = SelectQueryBuilder<Tables & { s: Tables['media_usage'] }, 's', object>;

/** Adds the profiles `p` of the users. */
const withProfiles = (users: Users): Users =>
  users.innerJoin('listed_profiles as p', 'p.user_id', 's.user_id') as unknown as Users;

const isNamed = (term: string) => contains(sql`p.search_text`, term.toLowerCase());

const isAmong = (userIds: readonly string[]) =>
  userIds.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`s.user_id in (${sql.join(userIds)})`;
