import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { MediaTables } from '../../media/index.ts';
import type { ProfileTables } from '../../profiles/index.ts';
import { contains, isLike } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

export const usageOrders = ['user_id', 'displayname', 'media_length', 'media_count'] as const;

export type UsageOrder = (typeof usageOrders)[number];

/** Which uploads count. Times are milliseconds since the epoch. */
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

const orders: Readonly<Record<UsageOrder, RawBuilder<unknown>>> = {
  user_id: sql`t.user_id`,
  displayname: sql`coalesce(t.displayname, '')`,
  media_length: sql`t.media_length`,
  media_count: sql`t.media_count`,
};

/** Counts the files and bytes that each user has uploaded. */
export class MediaUsage {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  page(
    filter: UsageFilter,
    order: { readonly by: UsageOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<MediaUsageOfUser>> {
    return readPage(
      this.#usage(filter).selectAll('t'),
      { by: orders[order.by], key: orders.user_id, descending: order.descending },
      start,
      limit,
    );
  }

  /** Counts the users who have uploaded media. */
  count(filter: UsageFilter): Promise<number> {
    return countRows(this.#usage(filter));
  }

  #usage({ from, until, searchTerm }: UsageFilter) {
    const scanner = this.#database.scanner<MediaTables & ProfileTables>();
    let media = scanner
      .selectFrom('local_media as m')
      .leftJoin('profile_fields as n', (join) =>
        join.onRef('n.user_id', '=', 'm.user_id').on('n.field', '=', 'displayname'),
      )
      .select([
        'm.user_id',
        'n.value as displayname',
        sql<number | string>`count(*)`.as('media_count'),
        sql<number | string>`cast(sum(m.size) as bigint)`.as('media_length'),
      ])
      .where('m.file_id', 'is not', null)
      .where('m.preview_until', 'is', null)
      .groupBy(['m.user_id', 'n.value']);
    if (from !== undefined) media = media.where('m.created_at', '>=', from);
    if (until !== undefined) media = media.where('m.created_at', '<=', until);
    if (searchTerm !== undefined) {
      const name = JSON.stringify(searchTerm).slice(1, -1);
      media = media.where(
        sql<boolean>`(${isLike(sql`lower(m.user_id)`, ['@%', searchTerm.toLowerCase(), '%:%'])}
          or ${contains(sql`coalesce(n.value, '')`, name)}
          or ${contains(sql`lower(coalesce(n.value, ''))`, name.toLowerCase())})`,
      );
    }
    return scanner.selectFrom(media.as('t'));
  }
}
