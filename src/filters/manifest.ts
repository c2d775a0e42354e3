import type { SliceManifest } from '../kernel/slices/index.ts';
import { filterMigrations } from './migrations.ts';

export const filtersManifest = {
  name: 'filters',
  migrations: filterMigrations,
  accountRows: { tables: [{ table: 'filters', column: 'user_id', deletedOn: 'deactivation' }] },
} satisfies SliceManifest;
