import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** Number of 4 KiB pages that one transaction releases, so that other writers are not blocked for long. */
const pagesAtOnce = 200;

/**
 * Share of the pages of the file that stays free, if it is more than `keptPages`: free pages are used again before the
 * file grows.
 */
const keptShare = 0.05;

/** Minimum number of pages that stay free. */
const keptPages = 500;

/** Numbers of pages of a SQLite file, and its `auto_vacuum` mode. */
interface Pages {
  readonly all: number;
  readonly free: number;
  /** 2 (incremental): free pages can be released one by one. */
  readonly mode: number;
}

/**
 * Releases free pages of the file to the file system in small transactions, and keeps a reserve of free pages. Does
 * nothing for files whose `auto_vacuum` mode is not incremental.
 * @returns the number of released bytes
 */
export async function releaseFreePages(
  database: Pick<Database, 'batch' | 'scanner'>,
  signal: AbortSignal,
): Promise<number> {
  for (let released = 0; ; ) {
    const { all, free, mode } = await pagesOf(database);
    const pages = Math.min(pagesAtOnce, free - Math.max(keptPages, Math.floor(all * keptShare)));
    if (mode !== 2 || pages <= 0 || signal.aborted) return released * 4_096;
    // Each run of the statement releases one page: `StatementSync.run` takes one step.
    const rows = Array.from({ length: pages }, () => []);
    await database.batch([{ sql: 'pragma incremental_vacuum', rows }]);
    const left = (await pagesOf(database)).free;
    if (left >= free) return released * 4_096;
    released += free - left;
  }
}

async function pagesOf(database: Pick<Database, 'scanner'>): Promise<Pages> {
  const { rows } = await sql<Pages>`
    select page_count as "all", freelist_count as free, auto_vacuum as mode
    from pragma_page_count, pragma_freelist_count, pragma_auto_vacuum`.execute(database.scanner<never>());
  return rows[0] ?? { all: 0, free: 0, mode: 0 };
}
