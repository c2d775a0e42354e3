import type { SliceManifest } from '../kernel/slices/index.ts';
import { accountDataMigrations } from './migrations.ts';

export const accountDataManifest = {
  name: 'account-data',
  assignedNumbers: [{ bound: 'positions', table: 'account_data', column: 'position' }],
  migrations: accountDataMigrations,
  accountRows: { tables: [{ table: 'account_data', column: 'user_id', deletedOn: 'erasure' }] },
  roomRows: {
    tables: [
      { table: 'account_data', column: 'room_id', holds: 'room id', key: ['user_id', 'room_id', 'type'] },
    ],
  },
} satisfies SliceManifest;
