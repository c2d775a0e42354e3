import type { SliceManifest } from '../kernel/slices/index.ts';
import { directorySection } from './config.ts';
import { directoryMigrations } from './migrations.ts';
import { userTextIndex } from './users/text-index.ts';

export const directoryManifest = {
  name: 'directory',
  options: { directory: directorySection },
  migrations: directoryMigrations,
  textIndexes: [userTextIndex],
  roomRows: {
    tables: [
      { table: 'room_stats', column: 'room_nid', holds: 'room nid', key: ['room_nid'] },
      { table: 'room_servers', column: 'room_id', holds: 'room id', key: ['server_name', 'room_id'] },
    ],
  },
} satisfies SliceManifest;
