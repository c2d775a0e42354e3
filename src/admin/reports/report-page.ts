import type { PageCursors, PageStart } from '../paging/page-cursors.ts';
import { type PageQuery, pageFrom } from '../paging/page-query.ts';
import type { RowsOfPage } from '../paging/read-page.ts';

/** A list of reports with filters. */
export interface ReportList<Filter, Row> {
  page(filter: Filter, newestFirst: boolean, start: PageStart, limit: number): Promise<RowsOfPage<Row>>;
  count(filter: Filter): Promise<number>;
}

/** The part of a request that selects a page of reports. */
export interface ReportPageRequest {
  readonly query: PageQuery & { readonly dir?: 'f' | 'b' };
  readonly requester: { readonly userId: string };
}

/**
 * Reads a page of reports, the newest first by default, and counts all reports that the filter selects.
 * @param name names the list for the page cursors
 */
export async function reportPage<Filter, Row>(
  { list, cursors }: { readonly list: ReportList<Filter, Row>; readonly cursors: PageCursors },
  name: string,
  filter: Filter,
  { query, requester }: ReportPageRequest,
) {
  const newestFirst = query.dir !== 'f';
  const listed = { administrator: requester.userId, list: JSON.stringify([name, filter, newestFirst]) };
  const { rows, next } = await pageFrom(cursors, listed, query, (start, limit) =>
    list.page(filter, newestFirst, start, limit),
  );
  return { rows, rest: { total: await list.count(filter), ...(next !== undefined && { next_token: next }) } };
}
