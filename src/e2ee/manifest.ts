import type { AccountTable, DeviceTable, SliceManifest } from '../kernel/slices/index.ts';
import { deleteDeviceSignatures } from './device-signatures.ts';
import { deleteOneTimeKeys } from './keys/delete-one-time-keys.ts';
import { e2eeMigrations } from './migrations.ts';

const ofAccount = (table: string, column = 'user_id'): AccountTable => ({
  table,
  column,
  deletedOn: 'deactivation',
});

const ofDevice = (table: string): DeviceTable => ({
  table,
  userColumn: 'user_id',
  deviceColumn: 'device_id',
});

export const e2eeManifest = {
  name: 'e2ee',
  numbers: [
    { bound: 'positions', table: 'user_signatures', column: 'position' },
    { bound: 'one_time_keys', table: 'one_time_keys', column: 'id' },
  ],
  migrations: e2eeMigrations,
  accountRows: {
    tables: [
      ofAccount('cross_signing_keys'),
      ofAccount('user_signatures'),
      ofAccount('user_signatures', 'target_user_id'),
      ofAccount('room_key_versions'),
      ofAccount('room_key_backups'),
      ofAccount('room_keys'),
    ],
  },
  deviceRows: {
    tables: [
      ofDevice('one_time_keys'),
      ofDevice('claimed_one_time_keys'),
      ofDevice('fallback_keys'),
      ofDevice('device_keys'),
      ofDevice('dehydrated_devices'),
    ],
    deleteForDevices: deleteDeviceSignatures,
  },
  restored: { change: deleteOneTimeKeys },
} satisfies SliceManifest;
