import type { SliceManifest } from '../kernel/slices/index.ts';
import { limitOverrideMigrations } from './limit-overrides/migration.ts';
import { accountMigrations } from './migrations.ts';

export const accountsManifest: SliceManifest = {
  name: 'accounts',
  migrations: [...accountMigrations, ...limitOverrideMigrations],
};
