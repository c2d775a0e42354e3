import type { SliceManifest } from '../kernel/slices/index.ts';
import { pushMigrations } from './migrations.ts';

export const pushManifest: SliceManifest = {
  name: 'push',
  migrations: pushMigrations,
  roomRows: {
    tables: [{ table: 'unread_tallies', column: 'room_id', holds: 'room id', key: ['user_id', 'room_id'] }],
  },
};
