import type { SliceManifest } from '../kernel/slices/index.ts';
import { deviceMigrations } from './migrations.ts';

export const devicesManifest: SliceManifest = {
  name: 'devices',
  migrations: deviceMigrations,
};
