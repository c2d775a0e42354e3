import type { Migration } from '../../kernel/database/index.ts';

export const accountValidityMigrations: readonly Migration[] = [
  {
    name: 'admin/0002-account-validity',
    async up({ db }) {
      await db.schema
        .createTable('account_validity')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('expiration_ts', 'bigint', (column) => column.notNull())
        .addColumn('is_expired', 'integer', (column) => column.notNull())
        .execute();
    },
  },
];
