import type { SliceManifest } from '../kernel/slices/index.ts';
import { reportMigrations } from './migrations.ts';

export const reportsManifest = {
  name: 'reports',
  migrations: reportMigrations,
} satisfies SliceManifest;
