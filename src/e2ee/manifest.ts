import type { SliceManifest } from '../kernel/slices/index.ts';
import { e2eeMigrations } from './migrations.ts';

export const e2eeManifest: SliceManifest = {
  name: 'e2ee',
  migrations: e2eeMigrations,
};
