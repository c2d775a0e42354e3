import type { Migration } from '../kernel/database/index.ts';

export const delayedEventMigrations: readonly Migration[] = [
  {
    name: 'delayed-events/0001-delayed-events',
    async up({ db }) {
      await db.schema
        .createTable('delayed_events')
        .addColumn('delay_id', 'text', (column) => column.primaryKey())
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('request', 'text', (column) => column.unique())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('type', 'text', (column) => column.notNull())
        .addColumn('state_key', 'text')
        .addColumn('content', 'text', (column) => column.notNull())
        .addColumn('delay', 'bigint', (column) => column.notNull())
        .addColumn('since_ts', 'bigint', (column) => column.notNull())
        .addColumn('finalised_ts', 'bigint')
        .addColumn('outcome', 'text')
        .addColumn('reason', 'text')
        .addColumn('event_id', 'text')
        .addColumn('error', 'text')
        .execute();
      await db.schema
        .createIndex('delayed_events_by_user')
        .on('delayed_events')
        .columns(['user_id', 'since_ts'])
        .execute();
    },
  },
];
