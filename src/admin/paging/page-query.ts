import { type Static, Type } from 'typebox';
import type { ListedBy, PageCursors, PageStart } from './page-cursors.ts';
import type { RowsOfPage } from './read-page.ts';

/** Maximum number of rows of a page, whatever the request asks for. */
const maxRows = 1_000;

/** The query parameters of all paged lists. */
export const pageParameters = {
  from: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
  limit: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 100 }),
};

/** The query parameter with the direction: forwards or backwards. */
export const direction = Type.Union([Type.Literal('f'), Type.Literal('b')]);

const pageQuery = Type.Object(pageParameters);

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
  listed: ListedBy,
  { from, limit: requested }: PageQuery,
  read: (start: PageStart, limit: number) => Promise<RowsOfPage<Row>>,
): Promise<Page<Row>> {
  const limit = Math.min(requested, maxRows);
  if (limit === 0) return { rows: [], next: undefined };
  const { rows, next } = await read(cursors.startOf(listed, from), limit);
  if (next === undefined) return { rows, next: undefined };
  cursors.remember(listed, from + rows.length, next);
  return { rows, next: from + rows.length };
}
