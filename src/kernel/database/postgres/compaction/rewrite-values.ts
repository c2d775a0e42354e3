import { sql } from 'kysely';
import type { Writer } from '../../database.ts';
import { lockTimeout, maxRowsPerPage } from './move-rows.ts';
import { type LargeColumn, maxInlineBytes, quoted } from './table-facts.ts';

/** The pages from `begin` to before `end` of a table, and its columns whose values may be stored outside of the row. */
export interface ValueRange {
  readonly table: string;
  readonly columns: readonly LargeColumn[];
  readonly begin: number;
  readonly end: number;
}

/**
 * Moves the large values of a range of pages to free space near the beginning of the table: after a `VACUUM`,
 * PostgreSQL writes new values to the first pages with free space. An `UPDATE` stores a value again only if the value
 * is computed, which is why an empty text is appended to it.
 * @returns the number of rows with rewritten values
 */
export async function rewriteValues(writer: Writer<unknown>, range: ValueRange): Promise<number> {
  await sql.raw(`set local lock_timeout = ${lockTimeout}`).execute(writer);
  const isLarge = (name: string) => `pg_column_size(${name}) > ${maxInlineBytes}`;
  const names = range.columns.map(({ name, type }) => ({ name: quoted(name), type }));
  const assignments = names.map(
    ({ name, type }) =>
      `${name} = case when ${isLarge(name)} then ${name} || cast('' as ${type}) else ${name} end`,
  );
  const conditions = names.map(({ name }) => isLarge(name));
  const { numAffectedRows = 0n } = await sql`
    update only ${sql.raw(range.table)} set ${sql.raw(assignments.join(', '))}
    where ctid = any (array(select cast(format('(%s,%s)', page, item) as tid)
      from generate_series(cast(${range.begin} as bigint), ${range.end - 1}) page, generate_series(1, ${sql.raw(String(maxRowsPerPage))}) item))
      and (${sql.raw(conditions.join(' or '))})`.execute(writer);
  return Number(numAffectedRows);
}
