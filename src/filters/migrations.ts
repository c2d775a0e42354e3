import type { Migration } from '../kernel/database/index.ts';

export const filterMigrations: readonly Migration[] = [
  {
    name: 'filters/0001-filters',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('filters')
          .addColumn('user_id', 'text', (column) => column.notNull())
          .addColumn('filter_id', 'text', (column) => column.notNull())
          .addColumn('definition', 'text', (column) => column.notNull())
          .addColumn('created_at', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('filters_key', ['user_id', 'filter_id']),
      ).execute();
    },
  },
];
