import { type Expression, type SelectQueryBuilder, sql } from 'kysely';
import type { Cursor, PageStart } from './page-cursors.ts';

/** The sort order of a list. The key is unique and breaks ties, always ascending. */
export interface ListOrder {
  /** Never null. */
  readonly by: Expression<unknown>;
  readonly key: Expression<unknown>;
  readonly descending: boolean;
}

/** The rows of a page, with the cursor of its last row if more rows follow. */
export interface RowsOfPage<Row> {
  readonly rows: readonly Row[];
  readonly next: Cursor | undefined;
}

/** Reads one page of the rows that a query selects. @param limit maximum number of rows */
export async function readPage<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  { by, key, descending }: ListOrder,
  start: PageStart,
  limit: number,
): Promise<RowsOfPage<Row>> {
  const direction = descending ? 'desc' : 'asc';
  let page = query
    .select([sql<string | number>`${by}`.as('cursor_value'), sql<string | number>`${key}`.as('cursor_key')])
    .orderBy(sql`${by}`, direction)
    .orderBy(sql`${key}`, 'asc')
    .limit(limit + 1);
  if ('offset' in start) page = page.offset(start.offset);
  else {
    const { value, key: last } = start.after;
    const beyond = descending ? sql`${by} < ${value}` : sql`${by} > ${value}`;
    page = page.where(sql<boolean>`(${beyond} or (${by} = ${value} and ${key} > ${last}))`);
  }
  const found = (await page.execute()) as (Row & {
    cursor_value: string | number;
    cursor_key: string | number;
  })[];
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last && { value: last.cursor_value, key: last.cursor_key } };
}

/** Counts all rows that a query selects, on all pages. */
export async function countRows<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
): Promise<number> {
  const counted = query.select(({ fn }) => fn.countAll<number | string>().as('total'));
  const { total } = (await counted.executeTakeFirstOrThrow()) as { readonly total: number | string };
  return Number(total);
}
