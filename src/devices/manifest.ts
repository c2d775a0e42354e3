import type { SliceManifest } from '../kernel/slices/index.ts';
import { devicesSection } from './config.ts';
import { deviceMigrations } from './migrations.ts';

export const devicesManifest = {
  name: 'devices',
  assignedNumbers: [{ bound: 'positions', table: 'device_list_changes', column: 'position' }],
  options: { devices: devicesSection },
  migrations: deviceMigrations,
} satisfies SliceManifest;
