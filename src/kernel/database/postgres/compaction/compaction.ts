import { sql } from 'kysely';
import type { Clock } from '../../../clock.ts';
import type { Logger } from '../../../observability/logger.ts';
import type { Reader, Writer } from '../../database.ts';
import { DatabaseError } from '../../errors.ts';
import type { DatabaseStatistics } from '../../statistics.ts';
import { moveRows, NoSpaceBefore } from './move-rows.ts';
import { rewriteValues } from './rewrite-values.ts';
import {
  hasOldSnapshot,
  indexFacts,
  type LargeTable,
  largeTables,
  leftoverIndexes,
  pageBytes,
  pagesOf,
  type TableFacts,
  tableFacts,
  totalBytes,
} from './table-facts.ts';
import { WalBudget } from './wal-budget.ts';

export interface CompactionDeps {
  readonly reader: Reader<unknown>;
  /**
   * Runs a transaction that sees what others have committed, and fails once another server has taken the lease on
   * writing.
   */
  readonly transaction: <T>(work: (writer: Writer<unknown>) => Promise<T>) => Promise<T>;
  /** Runs a statement outside of transactions, however long it takes. */
  readonly run: (statement: string) => Promise<void>;
  readonly log: Logger;
  readonly clock: Clock;
  readonly statistics: Pick<DatabaseStatistics, 'movedRows'>;
}

/** Number of pages whose rows one transaction moves. */
const pagesAtOnce = 32;

/** Number of pages whose large values one transaction rewrites. */
const valuePagesAtOnce = 8;

/** Minimum bytes that a table or an index must waste to be compacted. */
const minWaste = 4 * 2 ** 20;

/** Share of its pages that a table must fill: a table that fills less is compacted. */
const tableFill = 0.7;

/**
 * Share of its pages that an index must fill: an index that fills less is rebuilt. Indexes are never as full as tables.
 */
const indexFill = 0.5;

/** Share of additional pages that a compacted table may have, since rows of different sizes leave gaps. */
const slack = 0.1;

/** Bytes of the write-ahead log that may be written in a minute. */
const walPerMinute = 256 * 2 ** 20;

/** Maximum number of passes in one run that move the rows of a table. */
const maxPasses = 4;

/** Maximum number of passes in one run that rewrite the large values of a table. */
const maxValuePasses = 2;

/** SQLSTATE of a statement that waited too long for a lock. */
const lockNotAvailable = '55P03';

/** SQLSTATE of a statement that was cancelled. */
const queryCanceled = '57014';

/**
 * Releases the space of deleted rows to the file system while the server works (decision 0168): moves rows from the
 * last pages of a table to free space in earlier pages, rewrites values that are stored outside of their rows, lets
 * `VACUUM` truncate the empty ends of tables, and rebuilds bloated indexes. Each run measures the tables again, so that
 * it continues after an interruption without a record of its progress.
 */
export class Compaction {
  readonly #deps: CompactionDeps;
  readonly #budget: WalBudget;
  /**
   * Results of the last rewrite of large values, by the oid of the table: the pages that the values took afterwards,
   * and the pages that they were estimated to need.
   */
  readonly #rewritten = new Map<number, { readonly pages: number; readonly needed: number }>();

  constructor(deps: CompactionDeps) {
    this.#deps = deps;
    this.#budget = new WalBudget(deps.clock, walPerMinute);
  }

  /**
   * Drops the indexes that an interrupted run has left, and compacts all tables that waste much space.
   * @returns the number of bytes that the compaction has released
   */
  async run(signal: AbortSignal): Promise<number> {
    const { reader, run } = this.#deps;
    if (signal.aborted) return 0;
    let cancelled = Promise.resolve();
    const cancel = () => {
      cancelled = this.#cancel().catch(() => undefined);
    };
    signal.addEventListener('abort', cancel, { once: true });
    let released = 0;
    try {
      for (const index of await leftoverIndexes(reader))
        await run(`drop index concurrently if exists ${index}`);
      for (const table of await largeTables(reader, minWaste)) {
        if (signal.aborted) break;
        const before = await totalBytes(reader, table);
        await this.#compact(table, signal);
        released += Math.max(0, before - (await totalBytes(reader, table)));
      }
    } catch (error) {
      if (!(signal.aborted && error instanceof DatabaseError && error.code === queryCanceled)) throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
      // A cancellation that arrives later would cancel the statements of the next run.
      await cancelled;
    }
    return released;
  }

  async #compact(table: LargeTable, signal: AbortSignal): Promise<void> {
    const { reader } = this.#deps;
    if (table.valuesOid !== 0) await this.#compactValues(table, signal);
    let pages = await pagesOf(reader, table);
    let facts = await tableFacts(reader, { ...table, pages });
    for (let pass = 0; pass <= maxPasses && isLoose(pages, facts.neededPages) && !signal.aborted; pass++) {
      if (!(await this.#vacuum(table, signal))) return;
      pages = await pagesOf(reader, table);
      facts = await tableFacts(reader, { ...table, pages });
      if (pass < maxPasses && isLoose(pages, facts.neededPages))
        await this.#moveRows({ ...table, pages }, facts, signal);
    }
    for (const { name, bytes, neededBytes } of await indexFacts(reader, table, facts)) {
      if (signal.aborted) return;
      if (bytes - neededBytes < minWaste || neededBytes > bytes * indexFill) continue;
      await this.#metered(() => this.#deps.run(`reindex index concurrently ${name}`), signal);
    }
  }

  /** Releases the space of deleted values that were stored outside of their rows. */
  async #compactValues(table: LargeTable, signal: AbortSignal): Promise<void> {
    const { reader } = this.#deps;
    const measure = async () => {
      const pages = await pagesOf(reader, table);
      const facts = await tableFacts(reader, { ...table, pages });
      const needed = facts.neededValuePages;
      return { pages, facts, needed, used: await pagesOf(reader, { oid: table.valuesOid }) };
    };
    let measured = await measure();
    const last = this.#rewritten.get(table.oid);
    // The last run could not store the values more densely.
    if (last && measured.used <= last.pages && measured.needed >= last.needed * tableFill) return;
    let wasRewritten = false;
    for (let pass = 0; pass <= maxValuePasses && isLoose(measured.used, measured.needed); pass++) {
      if (signal.aborted || !(await this.#vacuum(table, signal))) return;
      measured = await measure();
      if (pass === maxValuePasses || !isLoose(measured.used, measured.needed)) continue;
      await this.#rewriteValues({ ...table, pages: measured.pages }, measured.facts, signal);
      wasRewritten = true;
    }
    if (wasRewritten) this.#rewritten.set(table.oid, { pages: measured.used, needed: measured.needed });
  }

  /**
   * Rewrites the large values of a table, from its first page on: rewritten values take free space in earlier pages.
   */
  async #rewriteValues({ name, pages }: LargeTable, facts: TableFacts, signal: AbortSignal): Promise<void> {
    const { reader, transaction, statistics } = this.#deps;
    const { largeColumns: columns } = facts;
    if (columns.length === 0) return;
    for (let begin = 0; begin < pages; begin += valuePagesAtOnce) {
      if (signal.aborted || (await hasOldSnapshot(reader))) return;
      const range = { table: name, columns, begin, end: Math.min(pages, begin + valuePagesAtOnce) };
      try {
        await this.#metered(async () => {
          statistics.movedRows += await transaction((writer) => rewriteValues(writer, range));
        }, signal);
      } catch (error) {
        // Rows that another transaction is changing are left for the next pass.
        if (!(error instanceof DatabaseError) || error.code !== lockNotAvailable) throw error;
      }
    }
  }

  /**
   * Runs `VACUUM`, which frees the space of deleted rows and values and truncates the empty ends of their tables.
   * @returns false if it did not run, because an old transaction keeps deleted rows
   */
  async #vacuum({ name }: LargeTable, signal: AbortSignal): Promise<boolean> {
    const { reader, log, run } = this.#deps;
    if (await hasOldSnapshot(reader)) {
      log.info({ table: name }, 'An old transaction keeps deleted rows: the table is not compacted');
      return false;
    }
    await this.#metered(() => run(`vacuum (index_cleanup on, truncate on) ${name}`), signal);
    return true;
  }

  /** Moves the rows of the last pages to earlier pages, `pagesAtOnce` pages in each transaction. */
  async #moveRows({ name, pages }: LargeTable, facts: TableFacts, signal: AbortSignal): Promise<void> {
    const { reader, transaction, statistics } = this.#deps;
    const { column, neededPages } = facts;
    const target = Math.ceil(neededPages * (1 + slack)) + 1;
    for (let end = pages; end > target; end -= pagesAtOnce) {
      if (signal.aborted || (await hasOldSnapshot(reader))) return;
      const range = { table: name, column, begin: Math.max(target, end - pagesAtOnce), end, pages };
      try {
        await this.#metered(async () => {
          statistics.movedRows += await transaction((writer) => moveRows(writer, range));
        }, signal);
      } catch (error) {
        if (error instanceof NoSpaceBefore) return;
        // A row that another transaction is changing is left for the next pass.
        if (!(error instanceof DatabaseError) || error.code !== lockNotAvailable) throw error;
      }
    }
  }

  /** Runs work, then waits until the budget allows the write-ahead log that the work has caused. */
  async #metered(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const before = await this.#walPosition();
    await work();
    await this.#budget.spend((await this.#walPosition()) - before, signal);
  }

  async #walPosition(): Promise<number> {
    const { rows } = await sql<{ position: number }>`
      select cast(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bigint) as position`.execute(
      this.#deps.reader,
    );
    return Number(rows[0]?.position ?? 0);
  }

  /** Cancels a running `VACUUM` or `REINDEX` of this server. */
  async #cancel(): Promise<void> {
    await sql`select pg_cancel_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = current_user and state = 'active'
        and application_name = current_setting('application_name')
        and (query like 'vacuum (index_cleanup%' or query like 'reindex index concurrently%')`.execute(
      this.#deps.reader,
    );
  }
}

/** Whether compacting a table would release enough of its pages. */
const isLoose = (pages: number, neededPages: number): boolean =>
  neededPages < pages * tableFill && (pages - neededPages) * pageBytes >= minWaste;
