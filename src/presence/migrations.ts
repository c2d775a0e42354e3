import type { Migration } from '../kernel/database/index.ts';

export const presenceMigrations: readonly Migration[] = [
  {
    name: 'presence/0001-presence',
    async up({ db, run }) {
      await db.schema
        .createTable('presence')
        .addColumn('user_id', 'text', (column) => column.primaryKey())
        .addColumn('presence', 'text', (column) => column.notNull())
        .addColumn('status_msg', 'text')
        .addColumn('last_active', 'bigint', (column) => column.notNull())
        .execute();
      await run(`create index presence_present on presence (user_id) where presence <> 'offline'`);
    },
  },
];
