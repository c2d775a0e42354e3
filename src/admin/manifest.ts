import type { SliceManifest } from '../kernel/slices/index.ts';
import { accountValidityMigrations } from './account-validity/migrations.ts';
import { auditMigrations } from './audit/migrations.ts';
import { userListChecks, userListMigrations } from './users/migrations.ts';

export const adminManifest = {
  name: 'admin',
  migrations: [...auditMigrations, ...accountValidityMigrations, ...userListMigrations],
  checks: userListChecks,
  accountRows: { tables: [{ table: 'account_validity', column: 'user_id', deletedOn: 'deactivation' }] },
} satisfies SliceManifest;
