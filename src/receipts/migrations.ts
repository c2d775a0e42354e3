import type { Migration } from '../kernel/database/index.ts';

export const receiptMigrations: readonly Migration[] = [
  {
    name: 'receipts/0001-receipts',
    async up({ db, clustered }) {
      await db.schema
        .createTable('receipts')
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('type', 'text', (column) => column.notNull())
        .addColumn('thread_id', 'text', (column) => column.notNull())
        .addColumn('event_id', 'text', (column) => column.notNull())
        .addColumn('event_stream', 'bigint')
        .addColumn('ts', 'bigint', (column) => column.notNull())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('receipts_key', ['room_id', 'user_id', 'type', 'thread_id'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('receipts_by_position')
        .on('receipts')
        .columns(['room_id', 'position'])
        .execute();
    },
  },
];
