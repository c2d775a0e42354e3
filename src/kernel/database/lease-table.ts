import type { Kysely } from 'kysely';

/**
 * Makes the table of the lease on writing the database, which is used on PostgreSQL (decision 0131), unless it is there.
 * Its one row is called `writer`. Times are milliseconds since the epoch by the clock of the database server;
 * `expires_ts` is 0 when the holder has given the lease back.
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
