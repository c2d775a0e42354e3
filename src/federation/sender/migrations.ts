import type { Migration } from '../../kernel/database/index.ts';

export const senderMigrations: readonly Migration[] = [
  {
    name: 'federation/0002-sender',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('federation_outbox')
          .addColumn('destination', 'text', (column) => column.notNull())
          .addColumn('id', 'bigint', (column) => column.notNull())
          .addColumn('type', 'text', (column) => column.notNull())
          .addColumn('content', 'text', (column) => column.notNull())
          .addColumn('added_ts', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('federation_outbox_key', ['destination', 'id']),
      ).execute();
      await clustered(
        db.schema
          .createTable('destination_rooms')
          .addColumn('destination', 'text', (column) => column.notNull())
          .addColumn('room_nid', 'bigint', (column) => column.notNull())
          .addColumn('event_nid', 'bigint', (column) => column.notNull())
          .addColumn('stream', 'bigint', (column) => column.notNull())
          .addPrimaryKeyConstraint('destination_rooms_key', ['destination', 'room_nid']),
      ).execute();
      await clustered(
        db.schema
          .createTable('destination_positions')
          .addColumn('destination', 'text', (column) => column.primaryKey().notNull())
          .addColumn('stream', 'bigint', (column) => column.notNull())
          .addColumn('sent_ts', 'bigint', (column) => column.notNull()),
      ).execute();
    },
  },
  {
    name: 'federation/0003-ends-of-histories',
    async up({ db }) {
      await db.schema
        .alterTable('destination_rooms')
        .addColumn('arrived_stream', 'bigint', (column) => column.notNull().defaultTo(0))
        .execute();
    },
  },
];
