import type { Migration } from '../../kernel/database/index.ts';

export const limitOverrideMigrations: readonly Migration[] = [
  {
    name: 'accounts/0002-rate-limit-overrides',
    async up({ db }) {
      await db.schema
        .createTable('rate_limit_overrides')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('messages_per_second', 'bigint', (column) => column.notNull())
        .addColumn('burst_count', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
