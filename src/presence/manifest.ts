import type { SliceManifest } from '../kernel/slices/index.ts';
import { presenceMigrations } from './migrations.ts';

export const presenceManifest: SliceManifest = {
  name: 'presence',
  migrations: presenceMigrations,
};
