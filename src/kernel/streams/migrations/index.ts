import type { Migration } from '../../database/database.ts';

export const streamMigrations: readonly Migration[] = [
  {
    name: 'streams/0001-positions',
    async up({ db }) {
      await db.schema
        .createTable('number_bounds')
        .addColumn('name', 'text', (column) => column.primaryKey())
        .addColumn('bound', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('stream_followers')
        .addColumn('name', 'text', (column) => column.primaryKey())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
