import { type Expression, type SelectQueryBuilder, sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { Cursor, PageStart } from './page-cursors.ts';

/** The sort order of a list. The key is unique and breaks ties. */
export interface ListOrder {
  /** The value to sort by; never null. */
  readonly by: Expression<unknown>;
  readonly key: Expression<unknown>;
  readonly descending: boolean;
  /** Whether rows with equal values are sorted by descending keys; by default by ascending keys. */
  readonly keyDescends?: boolean;
}

/** The rows of a page, with the cursor of its last row if more rows follow. */
export interface RowsOfPage<Row> {
  readonly rows: readonly Row[];
  readonly next: Cursor | undefined;
}

/** A row with its value in the sort order and its key. */
export type OrderedRow<Row> = Row & {
  readonly cursor_value: string | number;
  readonly cursor_key: string | number;
};

/** Reads one page of the rows that a query selects. @param limit maximum number of rows */
export async function readPage<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  order: ListOrder,
  start: PageStart,
  limit: number,
): Promise<RowsOfPage<Row>> {
  return pageOf(await readRows(query, order, start, limit + 1), limit);
}

/** Returns the first rows as a page. @param firstRows the rows of the page, and one more row if the list continues */
export function pageOf<Row>(firstRows: readonly OrderedRow<Row>[], limit: number): RowsOfPage<Row> {
  const rows = firstRows.slice(0, limit);
  const last = firstRows.length > limit ? rows.at(-1) : undefined;
  return { rows, next: last && { value: last.cursor_value, key: last.cursor_key } };
}

/** Reads rows in a sort order. @param limit maximum number of rows */
export async function readRows<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
  { by, key, descending, keyDescends = false }: ListOrder,
  start: PageStart,
  limit: number,
): Promise<OrderedRow<Row>[]> {
  const direction = descending ? 'desc' : 'asc';
  let page = query
    .select([sql<string | number>`${by}`.as('cursor_value'), sql<string | number>`${key}`.as('cursor_key')])
    .orderBy(sql`${by}`, direction)
    .orderBy(sql`${key}`, keyDescends ? 'desc' : 'asc')
    .limit(limit);
  if ('offset' in start) page = page.offset(start.offset);
  else {
    const { value, key: last } = start.after;
    const beyond = descending ? sql`${by} < ${value}` : sql`${by} > ${value}`;
    // The second condition implies the first one, which is added because databases find its rows in an index.
    const reached = descending ? sql<boolean>`${by} <= ${value}` : sql<boolean>`${by} >= ${value}`;
    const later = keyDescends ? sql`${key} < ${last}` : sql`${key} > ${last}`;
    page = page.where(reached).where(sql<boolean>`(${beyond} or (${by} = ${value} and ${later}))`);
  }
  return (await page.execute()) as OrderedRow<Row>[];
}

/**
 * Reads one page in two steps, first keys and then rows. The sort then reads no other columns of the rows on other
 * pages.
 * @param query the rows, without selected columns
 * @param read reads the rows with these keys, in any order
 */
export async function readPageByKeys<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, object>,
  order: ListOrder,
  { start, limit }: { readonly start: PageStart; readonly limit: number },
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): Promise<RowsOfPage<Row>> {
  return readByKeys(await readRows(query, order, start, limit + 1), limit, read);
}

/**
 * Reads one page of a query that selects few rows, or whose order is computed: reads all selected rows before it sorts
 * them. Reading an index in that order would be slower, because the index also contains all rows that the query does
 * not select.
 */
export function readFewByKeys<Tables, Table extends keyof Tables, Row>(
  database: Database,
  query: SelectQueryBuilder<Tables, Table, object>,
  { by, key, ...directions }: ListOrder,
  page: { readonly start: PageStart; readonly limit: number },
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): Promise<RowsOfPage<Row>> {
  // The limit makes databases read the rows of the subquery before they sort them.
  const few = query.select([sql`${by}`.as('value'), sql`${key}`.as('key')]).limit(Number.MAX_SAFE_INTEGER);
  const order = { by: sql`t.value`, key: sql`t.key`, ...directions };
  return readPageByKeys(database.scanner<unknown>().selectFrom(few.as('t')), order, page, read);
}

/**
 * Reads the rows of a page whose keys are known. @param firstKeys keys of the page, and one more key if the list
 * continues
 */
export async function readByKeys<Row>(
  firstKeys: readonly OrderedRow<object>[],
  limit: number,
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): Promise<RowsOfPage<Row>> {
  const { rows, next } = pageOf(firstKeys, limit);
  if (rows.length === 0) return { rows: [], next };
  const keys = (rows as readonly OrderedRow<object>[]).map((row) => String(row.cursor_key));
  const known = await read(keys);
  // A row may have been deleted between the two steps.
  return { rows: keys.map((key) => known.get(key)).filter((row) => row !== undefined), next };
}

/** Counts all rows that a query selects, on all pages. */
export async function countRows<Tables, Table extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, Table, Row>,
): Promise<number> {
  const counted = query.select(({ fn }) => fn.countAll<number | string>().as('total'));
  const { total } = (await counted.executeTakeFirstOrThrow()) as { readonly total: number | string };
  return Number(total);
}
