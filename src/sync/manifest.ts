import type { SliceManifest } from '../kernel/slices/index.ts';
import { slidingSyncMigrations } from './sliding/connections/migrations.ts';

export const syncManifest: SliceManifest = {
  name: 'sync',
  migrations: slidingSyncMigrations,
  roomRows: {
    tables: [
      {
        table: 'sliding_sync_rooms',
        column: 'room_nid',
        holds: 'room nid',
        key: ['connection', 'room_nid', 'generation'],
      },
    ],
  },
};
