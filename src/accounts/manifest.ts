import type { SliceManifest } from '../kernel/slices/index.ts';
import { accountChecks } from './checks.ts';
import { accountsSection } from './config.ts';
import { limitOverrideMigrations } from './limit-overrides/migration.ts';
import { accountMigrations } from './migrations.ts';

export const accountsManifest = {
  name: 'accounts',
  checks: accountChecks,
  options: { accounts: accountsSection },
  accountRows: {
    tables: [
      { table: 'login_tokens', column: 'user_id', deletedOn: 'logout' },
      { table: 'user_consents', column: 'user_id', deletedOn: 'deactivation' },
    ],
  },
  migrations: [...accountMigrations, ...limitOverrideMigrations],
} satisfies SliceManifest;
