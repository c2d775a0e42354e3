import type { Row } from '../queries.ts';
import type { SqlValue } from '../statement.ts';
import { type Digest, digestFrom, digestOf, digestSql, emptyDigest, sumOf } from './row-digest.ts';
import type { TableShape } from './table-shape.ts';
import { query, quoted, type TransferDatabase } from './transfer-database.ts';

/**
 * A range of rows by primary key: the rows after the key `after`, up to and including the key `upTo`. An absent bound
 * does not limit the range.
 */
export interface KeyRange {
  readonly after?: readonly SqlValue[] | undefined;
  readonly upTo?: readonly SqlValue[] | undefined;
}

/** Returns the values of a row in the columns of the primary key. */
export const keyOf = ({ key }: TableShape, row: Row): SqlValue[] => key.map((name) => row[name] as SqlValue);

/** Returns the condition of a range, with its parameters. */
export function conditionOf(
  { key }: TableShape,
  { after, upTo }: KeyRange,
): { readonly text: string; readonly parameters: readonly SqlValue[] } {
  const columns = `(${key.map(quoted).join(', ')})`;
  const values = `(${key.map(() => '?').join(', ')})`;
  const parts = [...(after ? [`${columns} > ${values}`] : []), ...(upTo ? [`${columns} <= ${values}`] : [])];
  return {
    text: parts.length > 0 ? ` where ${parts.join(' and ')}` : '',
    parameters: [...(after ?? []), ...(upTo ?? [])],
  };
}

/** Reads the first `limit` rows of a range, in the order of the key. */
export function readRows(
  side: TransferDatabase,
  table: TableShape,
  range: KeyRange,
  limit: number,
): Promise<Row[]> {
  const { text, parameters } = conditionOf(table, range);
  const columns = table.columns.map(({ name }) => quoted(name)).join(', ');
  const order = table.key.map(quoted).join(', ');
  const statement = `select ${columns} from ${quoted(table.name)}${text} order by ${order} limit ${limit}`;
  return query(side, statement, parameters);
}

/** Rows that are read at a time for a digest. */
const rowsAtOnce = 500;

/**
 * Computes the digest of a range, to compare the rows of two databases. A PostgreSQL server computes the digest in a
 * query; the rows of SQLite are read in pieces.
 */
export async function digestOfRange(
  side: TransferDatabase,
  table: TableShape,
  range: KeyRange,
): Promise<Digest> {
  if (side.kind === 'postgres') {
    const { text, parameters } = conditionOf(table, range);
    const [row] = await query(
      side,
      `select ${digestSql(table)} from ${quoted(table.name)}${text}`,
      parameters,
    );
    return digestFrom(row ?? {});
  }
  let digest = emptyDigest;
  for (let { after } = range; ; ) {
    const rows = await readRows(side, table, { ...range, after }, rowsAtOnce);
    digest = sumOf(digest, digestOf(table, rows));
    const last = rows.at(-1);
    if (!last || rows.length < rowsAtOnce) return digest;
    after = keyOf(table, last);
  }
}
