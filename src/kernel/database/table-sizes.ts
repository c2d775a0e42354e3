import type { DatabaseKind } from './database.ts';
import { query, type TransferDatabase } from './transfer/transfer-database.ts';

/** The space that a table takes, with its indexes. */
export interface TableSize {
  readonly table: string;
  readonly bytes: number;
}

const statements: Readonly<Record<DatabaseKind, string>> = {
  sqlite: `select m.tbl_name as name, sum(s.pgsize) as bytes from dbstat s join sqlite_schema m on m.name = s.name
    group by m.tbl_name order by 2 desc, 1`,
  postgres: `select relname as name, pg_total_relation_size(oid) as bytes from pg_class
    where relkind = 'r' and relnamespace = current_schema()::regnamespace order by 2 desc, 1`,
};

/** Measures all tables, largest first. Reads the whole file of a SQLite database. */
export async function tableSizes(database: TransferDatabase): Promise<TableSize[]> {
  const rows = await query(database, statements[database.kind]);
  return rows.map(({ name, bytes }) => ({ table: String(name), bytes: Number(bytes) }));
}
