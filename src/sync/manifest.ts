import { writerFor } from '../kernel/database/index.ts';
import type { SliceManifest } from '../kernel/slices/index.ts';
import { syncSection } from './config.ts';
import { slidingSyncMigrations } from './sliding/connections/migrations.ts';
import { deleteOfDevices } from './sliding/connections/store.ts';
import type { SlidingSyncTables } from './sliding/connections/tables.ts';

export const syncManifest = {
  name: 'sync',
  options: { sync: syncSection },
  migrations: slidingSyncMigrations,
  deviceRows: {
    deleteForDevices: (writer, userId, deviceIds) =>
      deleteOfDevices(writerFor<SlidingSyncTables>(writer), userId, deviceIds),
  },
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
} satisfies SliceManifest;
