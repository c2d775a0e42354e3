import type { SliceManifest } from '../kernel/slices/index.ts';
import { mediaMigrations } from './migrations.ts';

export const mediaManifest: SliceManifest = {
  name: 'media',
  migrations: mediaMigrations,
};
