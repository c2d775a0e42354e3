import type { SliceManifest } from '../kernel/slices/index.ts';
import { sendLeaveJobsMigration } from './handshakes/leaving/migration.ts';
import { roomFederationMigrations } from './staging/migration.ts';

export const roomFederationManifest = {
  name: 'room-federation',
  assignedNumbers: [{ bound: 'incoming_events', table: 'incoming_events', column: 'id' }],
  migrations: [...roomFederationMigrations, sendLeaveJobsMigration],
  roomRows: {
    tables: [{ table: 'incoming_events', column: 'room_id', holds: 'room id', key: ['id'] }],
  },
} satisfies SliceManifest;
