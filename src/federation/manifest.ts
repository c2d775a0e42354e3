import type { SliceManifest } from '../kernel/slices/index.ts';
import { federationMigrations } from './migrations.ts';

export const federationManifest: SliceManifest = {
  name: 'federation',
  migrations: federationMigrations,
  roomRows: {
    tables: [
      { table: 'destination_rooms', column: 'room_nid', holds: 'room nid', key: ['destination', 'room_nid'] },
    ],
  },
};
