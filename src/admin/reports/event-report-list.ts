import { sql } from 'kysely';
import type { DirectoryTables } from '../../directory/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { ReportTables } from '../../reports/index.ts';
import { withoutNul } from '../paging/contains.ts';
import type { PageStart } from '../paging/page-cursors.ts';
import { countRows, type RowsOfPage, readPage } from '../paging/read-page.ts';

/** Which reports a list contains. Absent filters select all reports of events. */
export interface EventReportFilter {
  readonly reporter?: string | undefined;
  readonly roomId?: string | undefined;
  /** The sender of the reported event. */
  readonly sender?: string | undefined;
}

/** A report of an event, with the name and the canonical alias of its room. */
export interface ListedReport {
  readonly id: number;
  readonly received_ts: number;
  readonly reporter: string;
  readonly room_id: string | null;
  readonly event_id: string | null;
  readonly user_id: string | null;
  readonly reason: string | null;
  readonly score: number | null;
  readonly name: string | null;
  readonly canonical_alias: string | null;
}

/** Reads the reports of events. */
export class EventReportList {
  readonly #database: Database;

  constructor({ database }: { readonly database: Database }) {
    this.#database = database;
  }

  /** @param newestFirst the order of the reports */
  page(
    filter: EventReportFilter,
    newestFirst: boolean,
    start: PageStart,
    limit: number,
  ): Promise<RowsOfPage<ListedReport>> {
    const order = { by: sql`p.id`, key: sql`p.id`, descending: newestFirst };
    return readPage(this.#selected(filter), order, start, limit);
  }

  count(filter: EventReportFilter): Promise<number> {
    return countRows(this.#filtered(filter));
  }

  async get(id: number): Promise<ListedReport | undefined> {
    return this.#selected({}).where('p.id', '=', id).executeTakeFirst();
  }

  #selected(filter: EventReportFilter) {
    return this.#filtered(filter)
      .select(['p.id', 'p.received_ts', 'p.reporter', 'p.room_id', 'p.event_id', 'p.user_id'])
      .select(['p.reason', 'p.score', 'r.name', 'r.canonical_alias']);
  }

  #filtered({ reporter, roomId, sender }: EventReportFilter) {
    let query = this.#database
      .scanner<ReportTables & DirectoryTables>()
      .selectFrom('reports as p')
      .leftJoin('room_stats as r', 'r.room_id', 'p.room_id')
      .where('p.kind', '=', 'event');
    if (reporter !== undefined) query = query.where('p.reporter', '=', withoutNul(reporter));
    if (roomId !== undefined) query = query.where('p.room_id', '=', withoutNul(roomId));
    if (sender !== undefined) query = query.where('p.user_id', '=', withoutNul(sender));
    return query;
  }
}
