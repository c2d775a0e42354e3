import type { Migration } from '../../kernel/database/index.ts';

export const transactionMigrations: readonly Migration[] = [
  {
    name: 'federation/0001-transactions',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('received_transactions')
          .addColumn('origin', 'text', (column) => column.notNull())
          .addColumn('txn_id', 'text', (column) => column.notNull())
          .addColumn('received_ts', 'bigint', (column) => column.notNull())
          .addColumn('answer', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('received_transactions_key', ['origin', 'txn_id']),
      ).execute();
      await db.schema
        .createIndex('received_transactions_by_time')
        .on('received_transactions')
        .column('received_ts')
        .execute();
    },
  },
];
