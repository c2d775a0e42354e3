import { sql } from 'kysely';
import type { Database } from '../../kernel/database/index.ts';
import type { ReportTables } from '../../reports/index.ts';
import { withoutNul } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

/** Which reports a list contains. Absent filters select all reports of users. */
export interface UserReportFilter {
  readonly reporter?: string | undefined;
  /** The reported user. */
  readonly target?: string | undefined;
}

export interface ListedUserReport {
  readonly id: number;
  readonly received_ts: number;
  readonly reporter: string;
  /** The reported user. */
  readonly user_id: string | null;
  readonly reason: string | null;
}

/** Reads the reports of users. */
export class UserReportList {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  /** @param newestFirst the order of the reports */
  page(
    filter: UserReportFilter,
    newestFirst: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedUserReport>> {
    const order = { by: sql`id`, key: sql`id`, descending: newestFirst };
    return readPage(this.#selected(filter), order, start, limit);
  }

  count(filter: UserReportFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  get(id: number): Promise<ListedUserReport | undefined> {
    return this.#selected({}).where('id', '=', id).executeTakeFirst();
  }

  #selected(filter: UserReportFilter) {
    return this.#filtered(filter).select(['id', 'received_ts', 'reporter', 'user_id', 'reason']);
  }

  #filtered({ reporter, target }: UserReportFilter) {
    let query = this.#database.scanner<ReportTables>().selectFrom('reports').where('kind', '=', 'user');
    if (reporter !== undefined) query = query.where('reporter', '=', withoutNul(reporter));
    if (target !== undefined) query = query.where('user_id', '=', withoutNul(target));
    return query;
  }
}
