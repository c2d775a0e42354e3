import { sql } from 'kysely';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ReportTables } from '../../reports/index.ts';
import { withoutNul } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';
import type { FilterColumn, ListedReport, ReportKind } from './report-kinds.ts';

/** Required values of columns; an absent column matches all reports. */
export type ReportFilter = Readonly<Partial<Record<FilterColumn, string>>>;

/** Reads the reports of one kind. */
export class ReportList {
  readonly #database: Database;
  readonly #kind: ReportKind;

  constructor({ database }: { readonly database: Database }, kind: ReportKind) {
    this.#database = database;
    this.#kind = kind;
  }

  /** @param newestFirst whether the newest report comes first */
  page(
    filter: ReportFilter,
    newestFirst: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedReport>> {
    const order = { by: sql`p.id`, key: sql`p.id`, descending: newestFirst };
    return readPage(this.#selected(filter), order, start, limit);
  }

  count(filter: ReportFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  get(id: number): Promise<ListedReport | undefined> {
    return this.#selected({}).where('p.id', '=', id).executeTakeFirst();
  }

  #selected(filter: ReportFilter) {
    return this.#filtered(filter)
      .leftJoin('room_stats as r', 'r.room_id', 'p.room_id')
      .select(['p.id', 'p.received_ts', 'p.reporter', 'p.room_id', 'p.event_id', 'p.user_id'])
      .select(['p.reason', 'p.score', 'r.name', 'r.canonical_alias']);
  }

  #filtered(filter: ReportFilter) {
    let query = this.#database
      .scanner<ReportTables & DirectoryTables>()
      .selectFrom('reports as p')
      .where('p.kind', '=', this.#kind);
    for (const [column, value] of Object.entries(filter)) {
      query = query.where(`p.${column as FilterColumn}`, '=', withoutNul(value));
    }
    return query;
  }
}
