import type { SliceManifest } from '../kernel/slices/index.ts';
import { urlPreviewsSection } from './config.ts';
import { urlPreviewMigrations } from './migrations.ts';

export const urlPreviewsManifest = {
  name: 'url-previews',
  options: { urlPreviews: urlPreviewsSection },
  migrations: urlPreviewMigrations,
} satisfies SliceManifest;
