import type { Migration } from '../kernel/database/index.ts';

export const serverNoticeMigrations: readonly Migration[] = [
  {
    name: 'server-notices/0001-rooms',
    async up({ db }) {
      await db.schema
        .createTable('server_notice_rooms')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('room_id', 'text', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('server_notice_rooms_by_room')
        .on('server_notice_rooms')
        .column('room_id')
        .execute();
    },
  },
  {
    name: 'server-notices/0002-consent-notices',
    async up({ db }) {
      await db.schema
        .createTable('consent_notices')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('version', 'text', (column) => column.notNull())
        .execute();
    },
  },
];
