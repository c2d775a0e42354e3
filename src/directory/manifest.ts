import type { SliceManifest } from '../kernel/slices/index.ts';
import { directoryMigrations } from './migrations.ts';

export const directoryManifest: SliceManifest = {
  name: 'directory',
  migrations: directoryMigrations,
  roomRows: {
    tables: [{ table: 'room_stats', column: 'room_nid', holds: 'room nid', key: ['room_nid'] }],
  },
};
