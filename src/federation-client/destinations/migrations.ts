import type { Migration } from '../../kernel/database/index.ts';

export const destinationMigrations: readonly Migration[] = [
  {
    name: 'federation-client/0001-destinations',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('destinations')
          .addColumn('server_name', 'text', (column) => column.primaryKey().notNull())
          .addColumn('failure_since', 'bigint')
          .addColumn('retry_last_ts', 'bigint', (column) => column.notNull().defaultTo(0))
          .addColumn('retry_interval', 'bigint', (column) => column.notNull().defaultTo(0))
          .addColumn('spelling', 'text'),
      ).execute();
    },
  },
];
