import { CompiledQuery } from 'kysely';
import { query, quoted, type TransferDatabase } from './transfer-database.ts';

/**
 * Makes identity columns continue after the highest copied number. SQLite needs no change: it assigns the number after
 * the highest one in the table.
 */
export async function raiseIdentities(side: TransferDatabase): Promise<void> {
  if (side.kind === 'sqlite') return;
  const columns = await query(
    side,
    `select c.relname as "table", a.attname as "column", pg_get_serial_sequence(quote_ident(c.relname), a.attname) as sequence
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attidentity <> ''
      where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace`,
  );
  await side.database.transaction(async (writer) => {
    for (const { table, column, sequence } of columns) {
      const highest = `(select max(${quoted(String(column))}) from ${quoted(String(table))})`;
      await writer.executeQuery(
        CompiledQuery.raw(`select setval(?::regclass, coalesce(${highest}, 1), ${highest} is not null)`, [
          sequence,
        ]),
      );
    }
  });
}
