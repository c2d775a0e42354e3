import type { Migration } from '../kernel/database/index.ts';

export const reportMigrations: readonly Migration[] = [
  {
    name: 'reports/0001-reports',
    async up({ db }) {
      await db.schema
        .createTable('reports')
        .addColumn('id', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('kind', 'text', (column) => column.notNull())
        .addColumn('received_ts', 'bigint', (column) => column.notNull())
        .addColumn('reporter', 'text', (column) => column.notNull())
        .addColumn('room_id', 'text')
        .addColumn('event_id', 'text')
        .addColumn('user_id', 'text')
        .addColumn('reason', 'text')
        .addColumn('score', 'integer')
        .execute();
    },
  },
];
