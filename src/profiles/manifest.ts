import type { SliceManifest } from '../kernel/slices/index.ts';
import { profilesSection } from './config.ts';
import { profileMigrations } from './migrations.ts';

export const profilesManifest = {
  name: 'profiles',
  options: { profiles: profilesSection },
  migrations: profileMigrations,
} satisfies SliceManifest;
