import type { Migration } from '../../kernel/database/index.ts';

export const keyMigrations: readonly Migration[] = [
  {
    name: 'federation-client/0002-server-keys',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('server_keys')
          .addColumn('server_name', 'text', (column) => column.notNull())
          .addColumn('key_id', 'text', (column) => column.notNull())
          .addColumn('public_key', 'text', (column) => column.notNull())
          .addColumn('valid_until_ts', 'bigint', (column) => column.notNull())
          .addColumn('expired_ts', 'bigint')
          .addColumn('fetched_ts', 'bigint', (column) => column.notNull())
          .addColumn('response', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('server_keys_key', ['server_name', 'key_id']),
      ).execute();
    },
  },
];
