import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { PageStart } from './page-cursors.ts';
import { countRows, type OrderedRow, readRows } from './read-page.ts';

/** The order of a list by a flag without an index. */
export interface FlagOrder {
  /** Returns a condition for the rows whose flag is `value`. */
  readonly is: (value: 0 | 1) => RawBuilder<boolean>;
  /** A unique column with an index. */
  readonly key: RawBuilder<unknown>;
  readonly descending: boolean;
  /** Whether rows with the same flag are sorted by descending keys; by default by ascending keys. */
  readonly keyDescends?: boolean;
  /**
   * Whether an index suffices to find the rows with the same flag. Databases then skip rows faster than they count them.
   */
  readonly skipsFast?: boolean;
}

/**
 * Reads rows in the order of a flag, 0 or 1. Reads the rows with each value separately, in an index of the keys, so
 * that databases need not sort.
 * @param limit maximum number of rows
 */
export async function readByFlag<Tables, Table extends keyof Tables>(
  database: Database,
  query: SelectQueryBuilder<Tables, Table, object>,
  { is, key, descending, keyDescends = false, skipsFast = false }: FlagOrder,
  start: PageStart,
  limit: number,
): Promise<OrderedRow<object>[]> {
  const byKey = { by: key, key, descending: keyDescends, keyDescends };
  const rows: OrderedRow<object>[] = [];
  let offset = 'offset' in start ? start.offset : 0;
  const [first, second] = descending ? ([1, 0] as const) : ([0, 1] as const);
  for (const value of [first, second]) {
    const after = 'after' in start ? start.after : undefined;
    const isPassed = after && (descending ? value > Number(after.value) : value < Number(after.value));
    if (isPassed || rows.length === limit) continue;
    const ofValue = query.where(is(value));
    if (offset > 0 && value === first && !skipsFast) {
      // A count needs no order of the rows, so it is quicker than a read that skips all of them.
      const count = await countRows(
        database.scanner<unknown>().selectFrom(
          ofValue
            .select(sql`1`.as('one'))
            .limit(offset + 1)
            .as('t'),
        ),
      );
      if (count <= offset) {
        offset -= count;
        continue;
      }
    }
    const endsPreviousPage = after && Number(after.value) === value;
    const from = endsPreviousPage ? { after: { value: after.key, key: after.key } } : { offset };
    const found = await readRows(ofValue, byKey, from, limit - rows.length);
    rows.push(...found.map((row) => ({ ...row, cursor_value: value })));
    if (offset > 0) offset = found.length > 0 ? 0 : Math.max(0, offset - (await countRows(ofValue)));
  }
  return rows;
}
