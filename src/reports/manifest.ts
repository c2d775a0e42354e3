import type { SliceManifest } from '../kernel/slices/index.ts';
import { reportMigrations } from './migrations.ts';

export const reportsManifest: SliceManifest = {
  name: 'reports',
  migrations: reportMigrations,
};
