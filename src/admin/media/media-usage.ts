import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { MediaTables } from '../../media/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { containsFolded, isLike } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { type OrderedRow, type RowsOfPage, readByKeys, readPageByKeys } from '../paging/read-page.ts';

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
  readonly media_count: number | string;
  /** Bytes. */
  readonly media_length: number | string;
}

/** The display name of the user of the uploads `m`. */
const displayName = sql<string | null>`(
  select n.value from profile_fields n where n.user_id = m.user_id and n.field = 'displayname'
)`;

/** The figures of the uploads `m` of one user. */
const [count, length] = [
  sql<number | string>`count(*)`,
  sql<number | string>`cast(sum(m.size) as bigint)`,
] as const;

/** The values of orders that no index has, for the uploads `m` of one user. */
const computedOrders: Readonly<Record<'media_length' | 'media_count', RawBuilder<unknown>>> = {
  media_length: length,
  media_count: count,
};

/** Counts the files and bytes that each user has uploaded. */
export class MediaUsage {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  page(
    filter: UsageFilter,
    { by, descending }: { readonly by: UsageOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    const read = (userIds: readonly string[]) => this.#read(filter, userIds);
    if (by === 'user_id') return this.#pageByUserId(filter, descending, start, limit);
    if (by === 'displayname') {
      const hasUploads = sql<boolean>`exists ${this.#uploads(filter)
        .select('m.media_id')
        .where('m.user_id', '=', sql<string>`p.user_id`)}`;
      const users = this.#database
        .scanner<ProfileTables>()
        .selectFrom('listed_profiles as p')
        .where(hasUploads);
      const order = { by: sql`p.displayname`, key: sql`p.user_id`, descending };
      return readPageByKeys(users, order, { start, limit }, read);
    }
    const values = this.#uploads(filter)
      .select(['m.user_id', sql<string | number>`${computedOrders[by]}`.as('value')])
      .groupBy('m.user_id');
    const sorted = this.#database.scanner<unknown>().selectFrom(values.as('t'));
    const order = { by: sql`t.value`, key: sql`t.user_id`, descending };
    return readPageByKeys(sorted, order, { start, limit }, read);
  }

  /** Reads users in the order of an index, which databases do not use if the key is compared twice. */
  async #pageByUserId(
    filter: UsageFilter,
    descending: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    let users = this.#uploads(filter)
      .select(['m.user_id as cursor_value', 'm.user_id as cursor_key'])
      .groupBy('m.user_id')
      .orderBy('m.user_id', descending ? 'desc' : 'asc')
      .limit(limit + 1);
    if ('offset' in start) users = users.offset(start.offset);
    else users = users.where('m.user_id', descending ? '<' : '>', String(start.after.key));
    const found: OrderedRow<object>[] = await users.execute();
    return readByKeys(found, limit, (userIds) => this.#read(filter, userIds));
  }

  /** Counts the users who have uploaded media. */
  async count(filter: UsageFilter): Promise<number> {
    const { total } = await this.#uploads(filter)
      .select(sql<number | string>`count(distinct m.user_id)`.as('total'))
      .executeTakeFirstOrThrow();
    return Number(total);
  }

  async #read(
    filter: UsageFilter,
    userIds: readonly string[],
  ): Promise<ReadonlyMap<string, MediaUsageOfUser>> {
    const rows = await this.#uploads(filter)
      .select([
        'm.user_id',
        displayName.as('displayname'),
        count.as('media_count'),
        length.as('media_length'),
      ])
      .where('m.user_id', 'in', userIds)
      .groupBy('m.user_id')
      .execute();
    return new Map(rows.map((row) => [row.user_id, row]));
  }

  #uploads({ from, until, searchTerm }: UsageFilter) {
    let media = this.#database
      .scanner<MediaTables & ProfileTables>()
      .selectFrom('local_media as m')
      .where('m.file_id', 'is not', null)
      .where('m.preview_until', 'is', null);
    if (from !== undefined) media = media.where('m.created_at', '>=', from);
    if (until !== undefined) media = media.where('m.created_at', '<=', until);
    if (searchTerm !== undefined) {
      const name = JSON.stringify(searchTerm).slice(1, -1);
      media = media.where(
        sql<boolean>`(${isLike(sql`lower(m.user_id)`, ['@%', searchTerm.toLowerCase(), '%:%'])}
          or ${containsFolded(sql`coalesce(${displayName}, '')`, name)})`,
      );
    }
    return media;
  }
}
