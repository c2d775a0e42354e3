import type { SliceManifest } from '../kernel/slices/index.ts';
import { delayedEventMigrations } from './migrations.ts';

export const delayedEventsManifest = {
  name: 'delayed-events',
  migrations: delayedEventMigrations,
  accountRows: { tables: [{ table: 'delayed_events', column: 'user_id', deletedOn: 'deactivation' }] },
  roomRows: {
    tables: [{ table: 'delayed_events', column: 'room_id', holds: 'room id', key: ['delay_id'] }],
  },
} satisfies SliceManifest;
