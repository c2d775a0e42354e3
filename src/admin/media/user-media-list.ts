import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { MediaTables } from '../../media/index.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

export const mediaOrders = [
  'media_id',
  'upload_name',
  'created_ts',
  'last_access_ts',
  'media_length',
  'media_type',
  'quarantined_by',
  'safe_from_quarantine',
] as const;

/** A value of the parameter `order_by`. */
export type MediaOrder = (typeof mediaOrders)[number];

/** A file that a user has uploaded. Times are milliseconds since the epoch, sizes bytes, flags 0 or 1. */
export type ListedMedia = Pick<
  Selectable<MediaTables['local_media']>,
  | 'media_id'
  | 'created_at'
  | 'content_type'
  | 'file_name'
  | 'size'
  | 'last_access_at'
  | 'quarantined_by'
  | 'protected'
>;

const orders: Readonly<Record<MediaOrder, RawBuilder<unknown>>> = {
  media_id: sql`m.media_id`,
  upload_name: sql`coalesce(m.file_name, '')`,
  created_ts: sql`m.created_at`,
  last_access_ts: sql`coalesce(m.last_access_at, 0)`,
  media_length: sql`coalesce(m.size, 0)`,
  media_type: sql`coalesce(m.content_type, '')`,
  quarantined_by: sql`coalesce(m.quarantined_by, '')`,
  safe_from_quarantine: sql`m.protected`,
};

/** Reads the uploads of a user. */
export class UserMediaList {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  page(
    userId: string,
    order: { readonly by: MediaOrder; readonly descending: boolean },
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedMedia>> {
    const media = this.#uploadsOf(userId).select([
      'm.media_id',
      'm.created_at',
      'm.content_type',
      'm.file_name',
      'm.size',
      'm.last_access_at',
      'm.quarantined_by',
      'm.protected',
    ]);
    return readPage(
      media,
      { by: orders[order.by], key: orders.media_id, descending: order.descending },
      start,
      limit,
    );
  }

  count(userId: string): Promise<number> {
    return countRows(this.#uploadsOf(userId));
  }

  #uploadsOf(userId: string) {
    return this.#database
      .scanner<MediaTables>()
      .selectFrom('local_media as m')
      .where('m.user_id', '=', userId)
      .where('m.file_id', 'is not', null);
  }
}
