import type { SliceManifest } from '../kernel/slices/index.ts';
import { statisticsMigrations } from './migrations.ts';

export const statisticsManifest = {
  name: 'statistics',
  migrations: statisticsMigrations,
  roomRows: {
    tables: [{ table: 'statistics_active_rooms', column: 'room_nid', holds: 'room nid', key: ['room_nid'] }],
  },
  accountRows: {
    tables: [{ table: 'user_visits', column: 'user_id', deletedOn: 'deactivation' }],
  },
} satisfies SliceManifest;
