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

export interface ReportListDeps {
  readonly database: Database;
  /** Resolves when the table of listed rooms, `room_stats`, is up to date. */
  readonly caughtUp: () => Promise<void>;
}

/** Reads the reports of one kind, with the names of their rooms. */
export class ReportList {
  readonly #database: Database;
  readonly #caughtUp: () => Promise<void>;
  readonly #kind: ReportKind;

  constructor({ database, caughtUp }: ReportListDeps, kind: ReportKind) {
    this.#database = database;
    this.#caughtUp = caughtUp;
    this.#kind = kind;
  }

  /** @param newestFirst whether the newest report comes first */
  async page(
    filter: ReportFilter,
    newestFirst: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedReport>> {
    await this.#caughtUp();
    const order = { by: sql`p.id`, key: sql`p.id`, descending: newestFirst };
    return readPage(this.#selected(filter), order, start, limit);
  }

  count(filter: ReportFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  /** Returns the report with an id, if it is of this kind. */
  async get(id: number): Promise<ListedReport | undefined> {
    await this.#caughtUp();
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
