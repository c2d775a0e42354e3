import { sql } from 'kysely';
import type { Database } from '../../../src/kernel/database/index.ts';

/** Returns the names of the columns of each table. */
export async function tableColumns(
  database: Database,
  kind: 'sqlite' | 'postgres',
): Promise<Map<string, string[]>> {
  const { rows } = await (kind === 'sqlite'
    ? sql<{ table_name: string; column_name: string }>`
        select m.name as table_name, p.name as column_name
        from sqlite_master m join pragma_table_info(m.name) p where m.type = 'table'`
    : sql<{ table_name: string; column_name: string }>`
        select table_name, column_name from information_schema.columns where table_schema = 'public'`
  ).execute(database.reader<never>());
  const columns = new Map<string, string[]>();
  for (const { table_name: table, column_name: column } of rows) {
    columns.set(table, [...(columns.get(table) ?? []), column]);
  }
  return columns;
}
