import type { Migration } from '../kernel/database/index.ts';

export const activeUserMigrations: readonly Migration[] = [
  {
    name: 'active-users/0001-monthly-active-users',
    async up({ db }) {
      await db.schema
        .createTable('monthly_active_users')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('active_at', 'bigint', (column) => column.notNull())
        .addColumn('appservice_id', 'text')
        .execute();
    },
  },
];
