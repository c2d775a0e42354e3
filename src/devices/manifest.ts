import type { SliceManifest } from '../kernel/slices/index.ts';
import { devicesSection } from './config.ts';
import { deviceMigrations } from './migrations.ts';

export const devicesManifest = {
  name: 'devices',
  options: { devices: devicesSection },
  migrations: deviceMigrations,
} satisfies SliceManifest;
