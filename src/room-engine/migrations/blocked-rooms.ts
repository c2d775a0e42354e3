import type { Migration } from '../../kernel/database/index.ts';

/** Adds the table of the rooms that administrators have blocked. */
export const blockedRoomsMigration: Migration = {
  name: 'rooms/0015-blocked-rooms',
  async up({ db }) {
    await db.schema
      .createTable('blocked_rooms')
      .addColumn('room_id', 'text', (column) => column.primaryKey())
      .addColumn('blocked_by', 'text', (column) => column.notNull())
      .execute();
  },
};
