import { type Static, Type } from 'typebox';
import type { ListIdentity, PageCursors, PageStart } from './page-cursors.ts';
import type { RowsOfPage } from './read-page.ts';

/** Maximum number of rows of a page, also when the request names more. */
export const maxRows = 1_000;

/** The query parameters of all paged lists. */
export const pageParameters = {
  from: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
  limit: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 100 }),
};

/** The query parameter with the direction: forwards or backwards. */
export const direction = Type.Union([Type.Literal('f'), Type.Literal('b')]);

const pageQuery = Type.Object(pageParameters);

/** The part of a paged list that a request asks for. */
export type PageQuery = Static<typeof pageQuery>;

/** A page as the response contains it. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** The parameter `from` of the next page; `undefined` for the last page. */
  readonly next: number | undefined;
}

/** Reads a page of a list whose parameter `from` is a number. @param read reads at most `limit` rows from `start` */
export async function pageFrom<Row>(
  cursors: PageCursors,
  listed: ListIdentity,
  { from, limit: requested }: PageQuery,
  read: (start: PageStart, limit: number) => Promise<RowsOfPage<Row>>,
): Promise<Page<Row>> {
  const limit = Math.min(requested, maxRows);
  if (limit === 0) return { rows: [], next: undefined };
  let { rows, next } = await read(cursors.startOf(listed, from), limit);
  // All rows of a page may be deleted after their keys were read. Such a page is skipped: it would be empty, and the next page
  // would have the same `from`.
  while (rows.length === 0 && next !== undefined) ({ rows, next } = await read({ after: next }, limit));
  if (next === undefined) return { rows, next: undefined };
  cursors.remember(listed, from + rows.length, next);
  return { rows, next: from + rows.length };
}

/**
 * Reads a page as `pageFrom` does, and the number of rows on all pages. Counting reads all rows. Later pages therefore
 * use the cached number, and a first page that is the whole list is counted only with `countsFirst`.
 */
export async function pageWithTotal<Row>(
  cursors: PageCursors,
  listed: ListIdentity,
  query: PageQuery,
  {
    read,
    count,
    countsFirst = false,
  }: {
    /** @param total the number of rows on all pages, if it is known before the page is read */
    readonly read: (start: PageStart, limit: number, total: number | undefined) => Promise<RowsOfPage<Row>>;
    readonly count: () => Promise<number>;
    /**
     * Whether rows whose number is not cached are counted before a page is read. `read` may be quicker when it knows
     * the number.
     */
    readonly countsFirst?: boolean;
  },
): Promise<Page<Row> & { readonly total: number }> {
  const isFirst = query.from === 0;
  const cached = isFirst ? undefined : cursors.totalOf(listed);
  const known = cached ?? (countsFirst ? await count() : undefined);
  const page = await pageFrom(cursors, listed, query, (start, limit) => read(start, limit, known));
  const isOnlyPage = isFirst && query.limit > 0 && page.next === undefined;
  const total = isOnlyPage ? page.rows.length : (known ?? (await count()));
  if (cached === undefined) cursors.rememberTotal(listed, total);
  return { ...page, total };
}
