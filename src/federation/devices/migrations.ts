import type { Migration } from '../../kernel/database/index.ts';

export const announcementMigrations: readonly Migration[] = [
  {
    name: 'federation/0010-announced-device-lists',
    async up({ db, clustered }) {
      await clustered(
        db.schema
          .createTable('announced_device_lists')
          .addColumn('user_id', 'text', (column) => column.primaryKey().notNull())
          .addColumn('stream_id', 'bigint', (column) => column.notNull())
          .addColumn('previous', 'bigint')
          .addColumn('device_id', 'text', (column) => column.notNull()),
      ).execute();
    },
  },
];
