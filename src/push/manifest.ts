import type { SliceManifest } from '../kernel/slices/index.ts';
import { pushSection } from './config.ts';
import { pushMigrations } from './migrations.ts';

export const pushManifest = {
  name: 'push',
  assignedNumbers: [{ bound: 'positions', table: 'push_rules', column: 'position' }],
  options: { push: pushSection },
  migrations: pushMigrations,
  accountRows: {
    tables: [
      { table: 'unread_tallies', column: 'user_id', deletedOn: 'deactivation' },
      { table: 'push_rules', column: 'user_id', deletedOn: 'erasure' },
    ],
  },
  roomRows: {
    tables: [{ table: 'unread_tallies', column: 'room_id', holds: 'room id', key: ['user_id', 'room_id'] }],
  },
} satisfies SliceManifest;
