import type { Migration } from '../../../kernel/database/index.ts';

export const slidingSyncMigrations: readonly Migration[] = [
  {
    name: 'sync/0001-sliding-sync',
    async up({ db, clustered }) {
      await db.schema
        .createTable('sliding_sync_connections')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('device_id', 'text', (column) => column.notNull())
        .addColumn('conn_id', 'text', (column) => column.notNull())
        .addColumn('floor', 'bigint', (column) => column.notNull())
        .addColumn('states', 'text', (column) => column.notNull())
        .addColumn('used_ts', 'bigint', (column) => column.notNull())
        .addUniqueConstraint('sliding_sync_connections_by_name', ['user_id', 'device_id', 'conn_id'])
        .execute();
      await clustered(
        db.schema
          .createTable('sliding_sync_rooms')
          .addColumn('connection', 'bigint', (column) => column.notNull())
          .addColumn('room_nid', 'bigint', (column) => column.notNull())
          .addColumn('generation', 'bigint', (column) => column.notNull())
          .addColumn('timeline', 'bigint', (column) => column.notNull())
          .addColumn('receipts', 'bigint', (column) => column.notNull())
          .addColumn('account_data', 'bigint', (column) => column.notNull())
          .addColumn('timeline_limit', 'integer', (column) => column.notNull())
          .addColumn('state', 'integer', (column) => column.notNull())
          .addPrimaryKeyConstraint('sliding_sync_rooms_key', ['connection', 'room_nid', 'generation']),
      ).execute();
    },
  },
];
