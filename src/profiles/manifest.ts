import type { SliceManifest } from '../kernel/slices/index.ts';
import { profileMigrations } from './migrations.ts';

export const profilesManifest: SliceManifest = {
  name: 'profiles',
  migrations: profileMigrations,
};
