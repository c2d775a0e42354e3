import type { SliceManifest } from '../kernel/slices/index.ts';
import { toDeviceMigrations } from './migrations.ts';

export const toDeviceManifest: SliceManifest = {
  name: 'to-device',
  migrations: toDeviceMigrations,
};
