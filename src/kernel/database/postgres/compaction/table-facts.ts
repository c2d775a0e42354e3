import { sql } from 'kysely';
import type { Reader } from '../../database.ts';

/** Bytes of a page. */
export const pageBytes = 8_192;

/** Bytes of the part of a page that stores rows. */
export const usableBytes = 8_160;

/**
 * Bytes that a row takes in addition to its values: a header, and a pointer in the page. Source: PostgreSQL manual,
 * "Database Page Layout".
 */
const rowOverhead = 32;

/** Bytes that an index entry takes in addition to its values. */
const indexOverhead = 20;

/** Share of each page that PostgreSQL fills when it builds an index. */
const filledShare = 0.9;

/**
 * Maximum bytes of a value inside its row. PostgreSQL stores larger values in pieces of this size in a TOAST table, and
 * a pointer to them in the row.
 * Source: PostgreSQL manual, "TOAST".
 */
export const maxInlineBytes = 1_996;

/** Bytes of a pointer to a value in a TOAST table. */
const pointerBytes = 18;

/** Bytes of overhead of each piece of a value in a TOAST table. */
const pieceOverhead = 44;

/** Pages that are read to estimate the rows of a table. */
const sampledPages = 400;

/** A table that is large enough to be measured. */
export interface LargeTable {
  readonly oid: number;
  /** Quoted, with its schema. */
  readonly name: string;
  readonly pages: number;
  /** The oid of the TOAST table with the large values; 0 if no column may have large values. */
  readonly valuesOid: number;
}

/** A column whose values may be stored outside of their row. */
export interface LargeColumn {
  readonly name: string;
  readonly type: 'text' | 'bytea';
}

/** The estimated contents of a table. */
export interface TableFacts {
  readonly rows: number;
  /** Pages that the rows would fill without free space. */
  readonly neededPages: number;
  /** Pages that the values outside of the rows would fill without free space. */
  readonly neededValuePages: number;
  /** Mean bytes that the values of each column take inside the rows, by the name of the column. */
  readonly widths: ReadonlyMap<string, number>;
  readonly largeColumns: readonly LargeColumn[];
  /** A column that an `UPDATE` may set to itself. */
  readonly column: string;
}

/** An index, and the bytes that it would take if it were built again. */
export interface IndexFacts {
  /** Quoted, with its schema. */
  readonly name: string;
  readonly bytes: number;
  readonly neededBytes: number;
}

const asName = sql.raw(`format('%I.%I', n.nspname, c.relname)`);

/**
 * Lists the tables of this server that take at least `minBytes` with their indexes and large values, and have no
 * triggers.
 */
export async function largeTables(reader: Reader<unknown>, minBytes: number): Promise<LargeTable[]> {
  const { rows } = await sql<{ oid: number; name: string; bytes: number; values_oid: number }>`
    select c.oid::bigint as oid, ${asName} as name, pg_relation_size(c.oid) as bytes,
      c.reltoastrelid::bigint as values_oid
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and c.relpersistence = 'p' and n.nspname = current_schema() and not c.relhastriggers
      and pg_has_role(c.relowner, 'USAGE') and pg_total_relation_size(c.oid) >= ${minBytes}
    order by pg_table_size(c.oid) desc, c.oid`.execute(reader);
  return rows.map(({ oid, name, bytes, values_oid }) => ({
    oid,
    name,
    pages: bytes / pageBytes,
    valuesOid: values_oid,
  }));
}

/** Returns the pages that a table takes on disk. */
export async function pagesOf(reader: Reader<unknown>, { oid }: Pick<LargeTable, 'oid'>): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_relation_size(cast(${oid} as oid)) as bytes`.execute(reader);
  return (rows[0]?.bytes ?? 0) / pageBytes;
}

/** Returns the bytes that a table takes on disk with its indexes and large values. */
export async function totalBytes(reader: Reader<unknown>, { oid }: LargeTable): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    select pg_total_relation_size(cast(${oid} as oid)) as bytes`.execute(reader);
  return rows[0]?.bytes ?? 0;
}

/** Estimates the rows of a table from some of its pages: statistics of PostgreSQL may be missing or outdated. */
export async function tableFacts(reader: Reader<unknown>, table: LargeTable): Promise<TableFacts> {
  const columns = await columnsOf(reader, table);
  const percent = Math.min(100, (100 * sampledPages) / Math.max(1, table.pages));
  const sums = columns.map(({ name }, index) => {
    const size = `pg_column_size(${quoted(name)})`;
    const isLarge = `${size} > ${maxInlineBytes}`;
    const outside = `${size} + ceil(${size} / ${maxInlineBytes}.0) * ${pieceOverhead}`;
    return `sum(case when ${isLarge} then ${pointerBytes} else ${size} end) as c${index},
      sum(case when ${isLarge} then ${outside} else 0 end) as v${index}`;
  });
  const { rows } = await sql<Record<string, number>>`
    select count(*) as rows, ${sql.raw(sums.join(', '))}
    from only ${sql.raw(table.name)} tablesample system (${sql.raw(String(percent))})`.execute(reader);
  const [sample = {}] = rows;
  const found = Number(sample['rows'] ?? 0);
  const widths = new Map(
    columns.map(({ name }, index) => [name, found === 0 ? 0 : Number(sample[`c${index}`] ?? 0) / found]),
  );
  const width = rowOverhead + [...widths.values()].reduce((sum, bytes) => sum + bytes, 0);
  const rowCount = Math.round((found * 100) / percent);
  const rowsPerPage = Math.max(1, Math.floor(usableBytes / width));
  const outside = columns.reduce((sum, _, index) => sum + Number(sample[`v${index}`] ?? 0), 0);
  return {
    rows: rowCount,
    neededPages: Math.ceil(rowCount / rowsPerPage),
    neededValuePages: Math.ceil((outside * 100) / percent / usableBytes),
    widths,
    largeColumns: columns.flatMap(({ name, type, isGenerated }) =>
      (type === 'text' || type === 'bytea') && !isGenerated ? [{ name, type }] : [],
    ),
    column: columns.find(({ isGenerated }) => !isGenerated)!.name,
  };
}

/** Lists the valid indexes of a table. Estimates the bytes that they need from the rows and widths of `tableFacts`. */
export async function indexFacts(
  reader: Reader<unknown>,
  { oid }: LargeTable,
  { rows: count, widths }: TableFacts,
): Promise<IndexFacts[]> {
  const { rows } = await sql<{ name: string; bytes: number; columns: string }>`
    select ${asName} as name, pg_relation_size(c.oid) as bytes,
      (select json_agg(a.attname) from unnest(cast(i.indkey as int2[])) k
        left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k)::text as columns
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where i.indrelid = cast(${oid} as oid) and i.indisvalid and i.indisready
    order by bytes desc, name`.execute(reader);
  const wholeRow = [...widths.values()].reduce((sum, bytes) => sum + bytes, 0);
  return rows.map(({ name, bytes, columns }) => {
    const names = JSON.parse(columns) as (string | null)[];
    // An expression takes at most as many bytes as the whole row.
    const width = names.reduce(
      (sum, column) => sum + (column === null ? wholeRow : (widths.get(column) ?? 0)),
      0,
    );
    return { name, bytes, neededBytes: Math.ceil((count * (width + indexOverhead)) / filledShare) };
  });
}

/** Lists the indexes that an interrupted `REINDEX CONCURRENTLY` has left. Source: PostgreSQL manual, "REINDEX". */
export async function leftoverIndexes(reader: Reader<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select ${asName} as name
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where not i.indisvalid and n.nspname = current_schema() and c.relname ~ '_cc(new|old)[0-9]*$'
      and pg_has_role(c.relowner, 'USAGE')
    order by name`.execute(reader);
  return rows.map(({ name }) => name);
}

/**
 * Whether a transaction that is older than a minute keeps deleted rows on disk, for instance a dump: moved rows would
 * then take space twice.
 */
export async function hasOldSnapshot(reader: Reader<unknown>): Promise<boolean> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and backend_xmin is not null and xact_start < clock_timestamp() - interval '1 minute'
      and backend_type = 'client backend'`.execute(reader);
  return Number(rows[0]?.count ?? 0) > 0;
}

async function columnsOf(
  reader: Reader<unknown>,
  { oid }: LargeTable,
): Promise<{ name: string; type: string; isGenerated: boolean }[]> {
  const { rows } = await sql<{ name: string; type: string; generated: string }>`
    select attname as name, format_type(atttypid, null) as type, cast(attgenerated as text) as generated from pg_attribute
    where attrelid = cast(${oid} as oid) and attnum > 0 and not attisdropped
    order by attnum`.execute(reader);
  return rows.map(({ name, type, generated }) => ({ name, type, isGenerated: generated !== '' }));
}

/** Returns an identifier in quotes, for SQL. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
