import type { Migration } from '../kernel/database/index.ts';
import { listedRoomsMigration } from './room-stats/listed-rooms.ts';
import { roomServersMigration } from './room-stats/room-servers.ts';
import { userTexts } from './users/store.ts';

export const directoryMigrations: readonly Migration[] = [
  {
    name: 'directory/0001-room-stats',
    async up({ db }) {
      await db.schema
        .createTable('room_stats')
        .addColumn('room_nid', 'bigint', (column) => column.primaryKey())
        .addColumn('room_id', 'text', (column) => column.notNull().unique())
        .addColumn('name', 'text')
        .addColumn('topic', 'text')
        .addColumn('canonical_alias', 'text')
        .addColumn('avatar_url', 'text')
        .addColumn('join_rule', 'text', (column) => column.notNull())
        .addColumn('history_visibility', 'text', (column) => column.notNull())
        .addColumn('guest_can_join', 'integer', (column) => column.notNull())
        .addColumn('room_type', 'text')
        .addColumn('encryption', 'text')
        .addColumn('version', 'text', (column) => column.notNull())
        .addColumn('creator', 'text', (column) => column.notNull())
        .addColumn('federatable', 'integer', (column) => column.notNull())
        .addColumn('joined_members', 'bigint', (column) => column.notNull())
        .addColumn('joined_local_members', 'bigint', (column) => column.notNull())
        .addColumn('invited_members', 'bigint', (column) => column.notNull())
        .addColumn('state_events', 'bigint', (column) => column.notNull())
        .addColumn('search_text', 'text', (column) => column.notNull())
        .execute();
      await db.schema
        .createIndex('room_stats_by_size')
        .on('room_stats')
        .columns(['joined_members', 'room_id'])
        .execute();
    },
  },
  {
    name: 'directory/0002-users',
    async up({ db, fullText }) {
      await db.schema
        .createTable('user_directory')
        .addColumn('nid', 'bigint', (column) => column.primaryKey().generatedByDefaultAsIdentity())
        .addColumn('user_id', 'text', (column) => column.notNull().unique())
        .addColumn('display_name', 'text')
        .addColumn('avatar_url', 'text')
        .execute();
      await fullText(userTexts);
    },
  },
  {
    name: 'directory/0003-rooms-by-name',
    async up({ run }) {
      // PostgreSQL limits the length of values in an index.
      await run(
        `CREATE INDEX room_stats_by_name ON room_stats ((substr(coalesce(name, ''), 1, 200)), room_id)`,
      );
    },
  },
  roomServersMigration,
  listedRoomsMigration,
];
