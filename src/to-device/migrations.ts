import type { Migration } from '../kernel/database/index.ts';

export const toDeviceMigrations: readonly Migration[] = [
  {
    name: 'to-device/0001-to-device',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('to_device_messages')
          .addColumn('user_id', 'text', (column) => column.notNull())
          .addColumn('device_id', 'text', (column) => column.notNull())
          .addColumn('position', 'bigint', (column) => column.notNull())
          .addColumn('message', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('to_device_messages_key', ['user_id', 'device_id', 'position']),
      ).execute();
      await clustered(
        db.schema
          .createTable('to_device_transactions')
          .addColumn('origin', 'text', (column) => column.notNull())
          .addColumn('device_id', 'text', (column) => column.notNull())
          .addColumn('digest', 'text', (column) => column.notNull())
          .addColumn('sent_at', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('to_device_transactions_key', ['origin', 'device_id', 'digest']),
      ).execute();
      await db.schema
        .createIndex('to_device_transactions_sent_at')
        .on('to_device_transactions')
        .column('sent_at')
        .execute();
    },
  },
];
