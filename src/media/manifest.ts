import type { SliceManifest } from '../kernel/slices/index.ts';
import { mediaSection } from './config.ts';
import { mediaMigrations } from './migrations.ts';
import { mediaUsageCheck } from './usage/migration.ts';

export const mediaManifest = {
  name: 'media',
  options: { media: mediaSection },
  migrations: mediaMigrations,
  // `hearth database check` compares the stored number and bytes of the uploads of each user with the uploads.
  checks: [mediaUsageCheck],
} satisfies SliceManifest;
