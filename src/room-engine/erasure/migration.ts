import type { Migration } from '../../kernel/database/index.ts';

export const erasureMigrations: readonly Migration[] = [
  {
    name: 'rooms/0011-erased-users',
    async up({ db }) {
      await db.schema
        .createTable('erased_users')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
