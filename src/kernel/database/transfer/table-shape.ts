import { query, type TransferDatabase } from './transfer-database.ts';

/** The parts of a table's schema that copying needs. All names are unquoted. */
export interface TableShape {
  readonly name: string;
  readonly columns: readonly ColumnShape[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
  /** Columns of each further unique index. */
  readonly unique: readonly (readonly string[])[];
}

export interface ColumnShape {
  readonly name: string;
  readonly isBytes: boolean;
}

/**
 * Tables that describe a database itself and differ between two databases with the same contents: the lease, the list
 * of migrations, and the marks of moved and of split databases.
 */
const ownTables = new Set(['schema_migrations', 'writer_lease', 'database_moves', 'data_stores']);

/**
 * Reads the tables that are to be copied, by name. Leaves out the tables that describe the database itself.
 * @throws Error when a table has no primary key
 */
export async function readTables(
  side: TransferDatabase,
  isCopied: (table: string) => boolean,
): Promise<TableShape[]> {
  const { columns, unique } = await (side.kind === 'sqlite' ? sqliteColumns(side) : postgresColumns(side));
  const tables = tablesOf(
    columns.filter(({ table }) => !ownTables.has(table) && isCopied(table)),
    unique,
  );
  const keyless = tables.find(({ key }) => key.length === 0);
  if (keyless) throw new Error(`the table ${keyless.name} has no primary key`);
  return tables;
}

interface ColumnRow {
  readonly table: string;
  readonly column: string;
  readonly type: string;
  /** Place in the primary key, from 1 on; 0 for columns outside of the primary key. */
  readonly keyPlace: number;
}

interface UniqueRow {
  readonly table: string;
  readonly index: string;
  readonly column: string;
}

interface SchemaRows {
  readonly columns: readonly ColumnRow[];
  readonly unique: readonly UniqueRow[];
}

const textAndNumberTypes = new Set(['text', 'integer', 'bigint']);
const bytesTypes = new Set(['blob', 'bytea']);

function tablesOf(columns: SchemaRows['columns'], unique: SchemaRows['unique']): TableShape[] {
  const indexes = Map.groupBy(unique, ({ table }) => table);
  return [...Map.groupBy(columns, ({ table }) => table)].map(([name, tableColumns]) => ({
    name,
    columns: tableColumns.map(({ column, type }) => ({ name: column, isBytes: isBytes(name, column, type) })),
    key: tableColumns
      .filter(({ keyPlace }) => keyPlace > 0)
      .sort((a, b) => a.keyPlace - b.keyPlace)
      .map(({ column }) => column),
    unique: [...Map.groupBy(indexes.get(name) ?? [], ({ index }) => index).values()].map((parts) =>
      parts.map(({ column }) => column),
    ),
  }));
}

function isBytes(table: string, column: string, type: string): boolean {
  const known = type.toLowerCase();
  if (textAndNumberTypes.has(known)) return false;
  if (bytesTypes.has(known)) return true;
  throw new Error(`the column ${table}.${column} has the type ${type}, which cannot be copied`);
}

async function sqliteColumns(side: TransferDatabase): Promise<SchemaRows> {
  const columns = await query(
    side,
    `select m.name as "table", c.name as "column", c.type as type, c.pk as "keyPlace"
      from sqlite_schema m join pragma_table_info(m.name) c
      where m.type = 'table' and m.name not like 'sqlite\\_%' escape '\\'
        and m.sql not like 'create virtual%' and c.type <> ''
      order by m.name, c.cid`,
  );
  // Indexes over expressions have rows without a column.
  const unique = await query(
    side,
    `select m.name as "table", l.name as "index", i.name as "column"
      from sqlite_schema m join pragma_index_list(m.name) l join pragma_index_info(l.name) i
      where m.type = 'table' and l."unique" = 1 and l.origin <> 'pk' and i.name is not null
      order by m.name, l.name, i.seqno`,
  );
  return { columns, unique } as unknown as SchemaRows;
}

async function postgresColumns(side: TransferDatabase): Promise<SchemaRows> {
  const columns = await query(
    side,
    `select t.relname as "table", a.attname as "column", format_type(a.atttypid, null) as type,
        coalesce(array_position(p.indkey::int2[], a.attnum) + 1, 0) as "keyPlace"
      from pg_class t
        join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        left join pg_index p on p.indrelid = t.oid and p.indisprimary
      where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace
      order by t.relname collate "C", a.attnum`,
  );
  const unique = await query(
    side,
    `select t.relname as "table", x.relname as "index", a.attname as "column"
      from pg_class t
        join pg_index i on i.indrelid = t.oid and i.indisunique and not i.indisprimary
        join pg_class x on x.oid = i.indexrelid
        join lateral unnest(i.indkey::int2[]) with ordinality k(attnum, place) on k.attnum > 0
        join pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum
      where t.relkind = 'r' and t.relnamespace = current_schema()::regnamespace
      order by t.relname collate "C", x.relname, k.place`,
  );
  return { columns, unique } as unknown as SchemaRows;
}
