import { UniqueViolation } from '../errors.ts';
import type { Row } from '../queries.ts';
import type { SqlValue, Statement } from '../statement.ts';
import { conditionOf, digestOfRange, type KeyRange, keyOf, readRows } from './key-range.ts';
import { areEqual, type Digest, digestOf, emptyDigest, sumOf } from './row-digest.ts';
import type { TableShape } from './table-shape.ts';
import { quoted, type TransferDatabase } from './transfer-database.ts';

/** Rows of the target differ from the rows of the source right after they were copied. */
export class CopyDiffers extends Error {
  override name = 'CopyDiffers';
}

export interface CopyTable {
  readonly source: TransferDatabase;
  readonly target: TransferDatabase;
  readonly table: TableShape;
  /** Whether no other process writes to the source. Then each range is compared again after it was written. */
  readonly isExclusive: boolean;
  /** Called after each range with the number of its rows. */
  onRows(rows: number): void;
}

/** Bytes of rows that are read at a time, so that large rows need little memory. */
const bytesAtOnce = 1_048_576;

/** Minimum number of rows that are read at a time. */
const minRows = 20;

/** Maximum number of rows that are read at a time. */
const maxRows = 2_000;

/** Maximum number of values in one statement that inserts several rows. */
const maxInsertedValues = 1_500;

/**
 * Makes the rows of a table in the target equal to those in the source. It compares the digests of ranges of the
 * primary key, and writes only ranges that differ, each in one transaction. A call after an interruption therefore
 * needs no record of the progress, and a second pass writes only the changed ranges.
 * @returns the digest of the table
 * @throws CopyDiffers when a range differs although it was written
 */
export async function copyTable({ source, target, table, isExclusive, onRows }: CopyTable): Promise<Digest> {
  let digest = emptyDigest;
  let limit = minRows;
  for (let after: readonly SqlValue[] | undefined; ; ) {
    const rows = await readRows(source, table, { after }, limit);
    const last = rows.at(-1);
    const isEnd = !last || rows.length < limit;
    const range: KeyRange = { after, upTo: isEnd ? undefined : keyOf(table, last) };
    const wanted = digestOf(table, rows);
    if (!areEqual(wanted, await digestOfRange(target, table, range))) {
      await replaceRange(target, table, range, rows);
      if (isExclusive && !areEqual(wanted, await digestOfRange(target, table, range)))
        throw new CopyDiffers(`the table ${table.name} differs after it was copied`);
    }
    digest = sumOf(digest, wanted);
    onRows(rows.length);
    if (isEnd) return digest;
    after = range.upTo;
    limit = nextLimit(rows);
  }
}

/** Returns how many rows to read next, so that they have about `bytesAtOnce` bytes if they are as large as these. */
function nextLimit(rows: readonly Row[]): number {
  let bytes = 0;
  for (const row of rows) {
    for (const value of Object.values(row)) {
      bytes += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
    }
  }
  const fitting = Math.floor((bytesAtOnce * rows.length) / Math.max(1, bytes));
  return Math.max(minRows, Math.min(maxRows, fitting));
}

async function replaceRange(
  { database }: TransferDatabase,
  table: TableShape,
  range: KeyRange,
  rows: readonly Row[],
): Promise<void> {
  const { text, parameters } = conditionOf(table, range);
  const removal = { sql: `delete from ${quoted(table.name)}${text}`, rows: [parameters] };
  const inserts = insertsOf(table, rows);
  try {
    await database.batch([removal, ...inserts]);
  } catch (error) {
    if (!(error instanceof UniqueViolation)) throw error;
    await database.batch([removal, ...removalsByUniqueIndexes(table, rows), ...inserts]);
  }
}

/** Returns statements that insert rows. Their SQL has at most two texts, each of which the database prepares once. */
function insertsOf({ name, columns }: TableShape, rows: readonly Row[]): Statement[] {
  const values = rows.map((row) => columns.map((column) => row[column.name] as SqlValue));
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const placeholders = `(${columns.map(() => '?').join(', ')})`;
  const insert = (count: number) =>
    `insert into ${quoted(name)} (${names}) values ${Array.from({ length: count }, () => placeholders).join(', ')}`;
  const rowsPerInsert = Math.max(1, Math.floor(maxInsertedValues / columns.length));
  const rowsOfFullInserts = values.length - (values.length % rowsPerInsert);
  const blocks = Array.from({ length: rowsOfFullInserts / rowsPerInsert }, (_, index) =>
    values.slice(index * rowsPerInsert, (index + 1) * rowsPerInsert).flat(),
  );
  return [
    { sql: insert(rowsPerInsert), rows: blocks },
    { sql: insert(1), rows: values.slice(rowsOfFullInserts) },
  ].filter((statement) => statement.rows.length > 0);
}

/**
 * Returns statements that delete rows of other ranges. Such a row has a unique value of one of `rows`, because the
 * value has moved to another row since an earlier pass. If the source still has the deleted row, with another value, a
 * later range or pass writes it again.
 */
const removalsByUniqueIndexes = ({ name, unique }: TableShape, rows: readonly Row[]): Statement[] =>
  unique.map((columns) => ({
    sql: `delete from ${quoted(name)} where ${columns.map((column) => `${quoted(column)} = ?`).join(' and ')}`,
    rows: rows.map((row) => columns.map((column) => row[column] as SqlValue)),
  }));
