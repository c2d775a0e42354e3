import { createHash } from 'node:crypto';
import type { Reader, Writer } from '../kernel/database/index.ts';
import type { UrlPreviewTables as Tables } from './tables.ts';

const hashOf = (url: string) => createHash('sha256').update(url).digest('base64url');

/**
 * Returns the newest preview of a URL that was made in `hour` or earlier; `undefined` when there is none.
 * @param hour hours since the epoch
 */
export async function readPreview(
  reader: Reader<Tables>,
  url: string,
  hour: number,
): Promise<{ readonly hour: number; readonly response: string } | undefined> {
  return reader
    .selectFrom('url_previews')
    .select(['hour', 'response'])
    .where('url_hash', '=', hashOf(url))
    .where('hour', '<=', hour)
    .orderBy('hour', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Stores a preview of a URL. @param hour when it was made, in hours since the epoch */
export async function storePreview(
  writer: Writer<Tables>,
  url: string,
  hour: number,
  response: string,
): Promise<void> {
  await writer
    .insertInto('url_previews')
    .values({ url_hash: hashOf(url), hour, response })
    .onConflict((conflict) => conflict.columns(['url_hash', 'hour']).doUpdateSet({ response }))
    .execute();
}

/**
 * Deletes at most `limit` previews that were made before an hour.
 * @param before hours since the epoch
 * @returns the number of deleted previews
 */
export async function deletePreviews(writer: Writer<Tables>, before: number, limit: number): Promise<number> {
  const rows = await writer
    .selectFrom('url_previews')
    .select(['url_hash', 'hour'])
    .where('hour', '<', before)
    .orderBy('hour')
    .limit(limit)
    .execute();
  for (const { url_hash, hour } of rows) {
    await writer
      .deleteFrom('url_previews')
      .where('url_hash', '=', url_hash)
      .where('hour', '=', hour)
      .execute();
  }
  return rows.length;
}
