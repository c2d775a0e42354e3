import type { SliceManifest } from '../kernel/slices/index.ts';
import { federationSection } from './config.ts';
import { federationMigrations } from './migrations.ts';

export const federationManifest = {
  name: 'federation',
  assignedNumbers: [{ bound: 'federation_outbox', table: 'federation_outbox', column: 'id' }],
  options: { federation: federationSection },
  migrations: federationMigrations,
  // Other servers ignore an update of a device list when its id is below the last id that they received, so the ids
  // must not begin again at older values.
  afterDatabaseRestore: { sequences: ['device_list_updates'] },
  roomRows: {
    tables: [
      { table: 'destination_rooms', column: 'room_nid', holds: 'room nid', key: ['destination', 'room_nid'] },
    ],
  },
} satisfies SliceManifest;
