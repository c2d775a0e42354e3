import type { Migration } from '../kernel/database/index.ts';

export const statisticsMigrations: readonly Migration[] = [
  {
    name: 'statistics/0001-days',
    async up({ db, clustered }) {
      await db.schema
        .createTable('statistics_days')
        .addColumn('day', 'integer', (column) => column.primaryKey())
        .addColumn('users', 'bigint')
        .addColumn('active_users', 'bigint')
        .addColumn('rooms', 'bigint')
        .addColumn('media_bytes', 'bigint')
        .addColumn('database_bytes', 'bigint')
        .addColumn('messages', 'bigint', (column) => column.notNull())
        .addColumn('local_messages', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('statistics_hours')
        .addColumn('hour', 'integer', (column) => column.primaryKey())
        .addColumn('plain', 'bigint', (column) => column.notNull())
        .addColumn('local_plain', 'bigint', (column) => column.notNull())
        .addColumn('encrypted', 'bigint', (column) => column.notNull())
        .addColumn('local_encrypted', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('statistics_position')
        .addColumn('id', 'integer', (column) => column.primaryKey())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
      await clustered(
        db.schema
          .createTable('user_visits')
          .addColumn('day', 'integer', (column) => column.notNull())
          .addColumn('user_id', 'text', (column) => column.notNull())
          .addColumn('client', 'text', (column) => column.notNull())
          .addPrimaryKeyConstraint('user_visits_pk', ['day', 'user_id', 'client']),
      ).execute();
      await db.schema.createIndex('user_visits_by_user').on('user_visits').column('user_id').execute();
    },
  },
  {
    name: 'statistics/0002-active-rooms',
    async up({ db }) {
      await db.schema
        .createTable('statistics_active_rooms')
        .addColumn('room_nid', 'bigint', (column) => column.primaryKey())
        .addColumn('plain_at', 'bigint', (column) => column.notNull())
        .addColumn('encrypted_at', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
