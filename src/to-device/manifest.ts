import type { SliceManifest } from '../kernel/slices/index.ts';
import { toDeviceMigrations } from './migrations.ts';

export const toDeviceManifest = {
  name: 'to-device',
  assignedNumbers: [{ bound: 'positions', table: 'to_device_messages', column: 'position' }],
  migrations: toDeviceMigrations,
  deviceRows: {
    tables: [
      { table: 'to_device_messages', userColumn: 'user_id', deviceColumn: 'device_id' },
      { table: 'to_device_transactions', userColumn: 'origin', deviceColumn: 'device_id' },
    ],
  },
} satisfies SliceManifest;
