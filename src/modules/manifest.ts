import type { SliceManifest } from '../kernel/slices/index.ts';
import { modulesSection } from './config.ts';
import { moduleMigrations } from './migrations.ts';

export const modulesManifest = {
  name: 'modules',
  options: { modules: modulesSection },
  migrations: moduleMigrations,
} satisfies SliceManifest;
