import type { Migration } from '../kernel/database/index.ts';

export const openIdMigrations: readonly Migration[] = [
  {
    name: 'openid/0001-tokens',
    async up({ db, clustered }) {
      await db.schema
        .createTable('openid_tokens')
        .addColumn('hash', 'text', (column) => column.primaryKey())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('expires_ts', 'bigint', (column) => column.notNull())
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('openid_tokens_by_expiry')
        .on('openid_tokens')
        .column('expires_ts')
        .execute();
    },
  },
  {
    name: 'openid/0002-tokens-by-user',
    async up({ db }) {
      await db.schema
        .createIndex('openid_tokens_by_user')
        .on('openid_tokens')
        .columns(['user_id', 'expires_ts'])
        .execute();
    },
  },
];
