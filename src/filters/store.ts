import type { Reader, Writer } from '../kernel/database/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { FilterTables } from './tables.ts';

export async function readStoredFilter(
  reader: Reader<FilterTables>,
  userId: string,
  filterId: string,
): Promise<JsonObject | undefined> {
  const row = await reader
    .selectFrom('filters')
    .select('definition')
    .where('user_id', '=', userId)
    .where('filter_id', '=', filterId)
    .executeTakeFirst();
  return row && (JSON.parse(row.definition) as JsonObject);
}

/** Stores a filter unless it exists. */
export async function insertFilter(
  writer: Writer<FilterTables>,
  row: FilterTables['filters'],
): Promise<void> {
  await writer
    .insertInto('filters')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Deletes filters of a user except the newest `kept`, at most 1,000 in a call. */
export async function deleteOldest(
  writer: Writer<FilterTables>,
  userId: string,
  kept: number,
): Promise<void> {
  const oldest = await writer
    .selectFrom('filters')
    .select('filter_id')
    .where('user_id', '=', userId)
    .orderBy('created_at', 'desc')
    .orderBy('filter_id')
    .limit(1000)
    .offset(kept)
    .execute();
  if (oldest.length === 0) return;
  const ids = oldest.map((row) => row.filter_id);
  await writer.deleteFrom('filters').where('user_id', '=', userId).where('filter_id', 'in', ids).execute();
}
