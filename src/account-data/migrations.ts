import type { Migration } from '../kernel/database/index.ts';

export const accountDataMigrations: readonly Migration[] = [
  {
    name: 'account-data/0001-account-data',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('account_data')
          .addColumn('user_id', 'text', (column) => column.notNull())
          .addColumn('room_id', 'text', (column) => column.notNull())
          .addColumn('type', 'text', (column) => column.notNull())
          .addColumn('content', 'text', (column) => column.notNull())
          .addColumn('position', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('account_data_key', ['user_id', 'room_id', 'type']),
      ).execute();
      await db.schema
        .createIndex('account_data_position')
        .on('account_data')
        .columns(['user_id', 'position'])
        .execute();
    },
  },
];
