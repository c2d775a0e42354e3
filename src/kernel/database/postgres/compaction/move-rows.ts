import { sql } from 'kysely';
import type { Writer } from '../../database.ts';
import { quoted } from './table-facts.ts';

/** Maximum number of rows in a page. Source: `MaxHeapTuplesPerPage` of PostgreSQL. */
export const maxRowsPerPage = 291;

/**
 * Milliseconds to wait for a row that another transaction changes: less than PostgreSQL waits before it looks for a
 * deadlock.
 */
export const lockTimeout = 100;

/** The pages from `begin` to before `end` of a table that had `pages` pages when its compaction began. */
export interface PageRange {
  readonly table: string;
  /** The column that the `UPDATE` sets to itself. */
  readonly column: string;
  readonly begin: number;
  readonly end: number;
  readonly pages: number;
}

/** Thrown to undo a move: no page before the range has space for a row. */
export class NoSpaceBefore extends Error {}

/**
 * Moves the rows of a range of pages to free space in earlier pages. An `UPDATE` that changes nothing writes a row a
 * second time: in the page of the row while it has space, otherwise in a page that the free space map names. The rows
 * are updated until each has left the range. PostgreSQL does not remove the outdated versions before the transaction
 * ends, so the pages of the range gain no space meanwhile.
 * @returns how many rows were moved
 * @throws NoSpaceBefore when the earlier pages have too little space
 */
export async function moveRows(writer: Writer<unknown>, range: PageRange): Promise<number> {
  const { begin, end, pages } = range;
  await sql.raw(`set local lock_timeout = ${lockTimeout}`).execute(writer);
  const table = sql.raw(range.table);
  const column = sql.raw(quoted(range.column));
  const { rows } = await sql<{ ctid: string }>`
    select cast(ctid as text) as ctid from only ${table}
    where ctid = any (array(select cast(format('(%s,%s)', page, item) as tid)
      from generate_series(cast(${begin} as bigint), ${end - 1}) page, generate_series(1, ${sql.raw(String(maxRowsPerPage))}) item))`.execute(
    writer,
  );
  let left = rows.map(({ ctid }) => ctid);
  for (let round = 0; left.length > 0; round++) {
    if (round > maxRowsPerPage) throw new NoSpaceBefore();
    const { rows: moved } = await sql<{ ctid: string }>`
      update only ${table} set ${column} = ${column}
      where ctid = any (cast(${`{${left.map((ctid) => `"${ctid}"`).join(',')}}`} as tid[]))
      returning cast(ctid as text) as ctid`.execute(writer);
    left = moved.map(({ ctid }) => ctid).filter((ctid) => pageOf(ctid) >= begin);
    if (left.some((ctid) => pageOf(ctid) >= pages)) throw new NoSpaceBefore();
  }
  return rows.length;
}

/** Returns the page of a row from its address, for instance `(12,3)`. */
const pageOf = (ctid: string): number => Number(ctid.slice(1, ctid.indexOf(',')));
