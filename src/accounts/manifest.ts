import type { SliceManifest } from '../kernel/slices/index.ts';
import { accountsSection } from './config.ts';
import { limitOverrideMigrations } from './limit-overrides/migration.ts';
import { accountMigrations } from './migrations.ts';

export const accountsManifest = {
  name: 'accounts',
  options: { accounts: accountsSection },
  migrations: [...accountMigrations, ...limitOverrideMigrations],
} satisfies SliceManifest;
