import type { SliceManifest } from '../kernel/slices/index.ts';
import { directorySection } from './config.ts';
import { directoryMigrations } from './migrations.ts';
import { listedRoomChecks } from './room-stats/listed-rooms.ts';
import { userTextIndex } from './users/text-index.ts';

export const directoryManifest = {
  name: 'directory',
  options: { directory: directorySection },
  migrations: directoryMigrations,
  checks: listedRoomChecks,
  textIndexes: [userTextIndex],
  roomRows: {
    tables: [
      { table: 'room_stats', column: 'room_nid', holds: 'room nid', key: ['room_nid'] },
      { table: 'listed_rooms', column: 'room_id', holds: 'room id', key: ['room_id'] },
      { table: 'room_servers', column: 'room_id', holds: 'room id', key: ['server_name', 'room_id'] },
    ],
  },
} satisfies SliceManifest;
