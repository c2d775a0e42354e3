import type { Kysely } from 'kysely';

/**
 * Creates the table of the lease on writing a PostgreSQL database (decision 0131) if it is missing. Its only row has
 * the name `writer`. Times are milliseconds since the epoch by the clock of the database server; `expires_ts` is 0
 * after the holder has released the lease.
 */
export async function createLeaseTable(db: Kysely<never>): Promise<void> {
  await db.schema
    .createTable('writer_lease')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('epoch', 'bigint', (column) => column.notNull())
    .addColumn('host', 'text', (column) => column.notNull())
    .addColumn('pid', 'bigint', (column) => column.notNull())
    .addColumn('taken_ts', 'bigint', (column) => column.notNull())
    .addColumn('expires_ts', 'bigint', (column) => column.notNull())
    .execute();
}
