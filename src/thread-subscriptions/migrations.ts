import type { Migration } from '../kernel/database/index.ts';

export const threadSubscriptionMigrations: readonly Migration[] = [
  {
    name: 'thread-subscriptions/0001-thread-subscriptions',
    async up({ db, clustered }) {
      await db.schema
        .createTable('thread_subscriptions')
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('root_id', 'text', (column) => column.notNull())
        .addColumn('state', 'text', (column) => column.notNull())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .addPrimaryKeyConstraint('thread_subscriptions_key', ['user_id', 'room_id', 'root_id'])
        .$call(clustered)
        .execute();
      await db.schema
        .createIndex('thread_subscriptions_by_position')
        .on('thread_subscriptions')
        .columns(['user_id', 'position'])
        .execute();
    },
  },
];
