import type { Migration } from '../../kernel/database/index.ts';

/** The staging table of events from remote servers. */
const incomingMigration: Migration = {
  name: 'rooms/0008-incoming',
  async up({ db }) {
    await db.schema
      .createTable('incoming_events')
      .addColumn('id', 'bigint', (column) => column.primaryKey())
      .addColumn('event_id', 'text', (column) => column.notNull().unique())
      .addColumn('room_id', 'text', (column) => column.notNull())
      .addColumn('origin', 'text', (column) => column.notNull())
      .addColumn('received_ts', 'bigint', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('retry_ts', 'bigint', (column) => column.notNull())
      .addColumn('json', 'text', (column) => column.notNull())
      .execute();
  },
};

export const roomFederationMigrations: readonly Migration[] = [incomingMigration];
