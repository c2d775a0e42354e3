import type { SliceManifest } from '../kernel/slices/index.ts';
import { federationSection } from './config.ts';
import { federationMigrations } from './migrations.ts';

export const federationManifest = {
  name: 'federation',
  options: { federation: federationSection },
  migrations: federationMigrations,
  roomRows: {
    tables: [
      { table: 'destination_rooms', column: 'room_nid', holds: 'room nid', key: ['destination', 'room_nid'] },
    ],
  },
} satisfies SliceManifest;
