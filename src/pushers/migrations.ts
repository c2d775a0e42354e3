import type { Migration } from '../kernel/database/index.ts';

export const pusherMigrations: readonly Migration[] = [
  {
    name: 'pushers/0001-pushers',
    async up({ db, clustered }) {
      await db.schema
        .createTable('pushers')
        .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('device_id', 'text')
        .addColumn('kind', 'text', (column) => column.notNull())
        .addColumn('app_id', 'text', (column) => column.notNull())
        .addColumn('pushkey', 'text', (column) => column.notNull())
        .addColumn('app_display_name', 'text', (column) => column.notNull())
        .addColumn('device_display_name', 'text', (column) => column.notNull())
        .addColumn('profile_tag', 'text')
        .addColumn('lang', 'text', (column) => column.notNull())
        .addColumn('data', 'text', (column) => column.notNull())
        .addColumn('enabled', 'integer', (column) => column.notNull())
        .addColumn('set_at', 'bigint', (column) => column.notNull())
        .addColumn('failures', 'integer', (column) => column.notNull())
        .addColumn('failing_since', 'bigint')
        .addColumn('retry_at', 'bigint')
        .addColumn('badge', 'bigint')
        .addUniqueConstraint('pushers_key', ['user_id', 'app_id', 'pushkey'])
        .execute();
      await db.schema
        .createIndex('pushers_by_pushkey')
        .on('pushers')
        .columns(['pushkey', 'app_id'])
        .execute();
      await db.schema
        .createTable('pending_pushes')
        .addColumn('pusher_id', 'bigint', (column) => column.notNull())
        .addColumn('stream', 'bigint', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('nid', 'bigint', (column) => column.notNull())
        .addColumn('added_at', 'bigint', (column) => column.notNull())
        .addColumn('due_at', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('pending_pushes_pkey', ['pusher_id', 'stream'])
        .$call(clustered)
        .execute();
      await db.schema
        .createTable('mail_throttles')
        .addColumn('pusher_id', 'bigint', (column) => column.notNull())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('sent_at', 'bigint', (column) => column.notNull())
        .addColumn('pause', 'bigint', (column) => column.notNull())
        .addColumn('newest_at', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('mail_throttles_pkey', ['pusher_id', 'room_id'])
        .$call(clustered)
        .execute();
      await db.schema
        .createTable('pusher_progress')
        .addColumn('id', 'bigint', (column) => column.primaryKey())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
    },
  },
];
