import type { AccountTable, DeviceTable, SliceManifest } from '../kernel/slices/index.ts';
import { deleteDeviceSignatures } from './device-signatures.ts';
import { deleteOneTimeKeys } from './keys/delete-one-time-keys.ts';
import { e2eeMigrations } from './migrations.ts';

const accountTable = (table: string, column = 'user_id'): AccountTable => ({
  table,
  column,
  deletedOn: 'deactivation',
});

const deviceTable = (table: string): DeviceTable => ({
  table,
  userColumn: 'user_id',
  deviceColumn: 'device_id',
});

export const e2eeManifest = {
  name: 'e2ee',
  assignedNumbers: [
    { bound: 'positions', table: 'user_signatures', column: 'position' },
    { bound: 'one_time_keys', table: 'one_time_keys', column: 'id' },
  ],
  migrations: e2eeMigrations,
  accountRows: {
    tables: [
      accountTable('cross_signing_keys'),
      accountTable('user_signatures'),
      accountTable('user_signatures', 'target_user_id'),
      accountTable('room_key_versions'),
      accountTable('room_key_backups'),
      accountTable('room_keys'),
    ],
  },
  deviceRows: {
    tables: [
      deviceTable('one_time_keys'),
      deviceTable('claimed_one_time_keys'),
      deviceTable('fallback_keys'),
      deviceTable('device_keys'),
      deviceTable('dehydrated_devices'),
    ],
    deleteForDevices: deleteDeviceSignatures,
  },
  afterDatabaseRestore: { change: deleteOneTimeKeys },
} satisfies SliceManifest;
