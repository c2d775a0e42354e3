import type { SliceManifest } from '../kernel/slices/index.ts';
import { openIdMigrations } from './migrations.ts';

export const openIdManifest = {
  name: 'openid',
  migrations: openIdMigrations,
} satisfies SliceManifest;
