import type { Migration } from '../kernel/database/index.ts';

export const pushMigrations: readonly Migration[] = [
  {
    name: 'push/0001-rules-and-tallies',
    async up({ db, clustered }) {
      await db.schema
        .createTable('push_rules')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('rules', 'text', (column) => column.notNull())
        .addColumn('position', 'bigint', (column) => column.notNull())
        .execute();
      await db.schema
        .createTable('unread_tallies')
        .addColumn('user_id', 'text', (column) => column.notNull())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .addColumn('up_to', 'bigint', (column) => column.notNull())
        .addColumn('marks', 'text', (column) => column.notNull())
        .addPrimaryKeyConstraint('unread_tallies_key', ['user_id', 'room_id'])
        .$call(clustered)
        .execute();
    },
  },
];
