import type { SliceManifest } from '../kernel/slices/index.ts';
import { presenceSection } from './config.ts';
import { presenceMigrations } from './migrations.ts';

export const presenceManifest = {
  name: 'presence',
  options: { presence: presenceSection },
  migrations: presenceMigrations,
} satisfies SliceManifest;
