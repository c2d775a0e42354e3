import type { SliceManifest } from '../kernel/slices/index.ts';
import { activeUserMigrations } from './migrations.ts';

export const activeUsersManifest = {
  name: 'active-users',
  migrations: activeUserMigrations,
  accountRows: {
    tables: [{ table: 'monthly_active_users', column: 'user_id', deletedOn: 'deactivation' }],
  },
} satisfies SliceManifest;
