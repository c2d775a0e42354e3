import type { SliceManifest } from '../kernel/slices/index.ts';
import { modulesSection } from './config.ts';

export const modulesManifest = {
  name: 'modules',
  options: { modules: modulesSection },
} satisfies SliceManifest;
