import type { SliceManifest } from '../kernel/slices/index.ts';
import { consoleSection } from './config.ts';

export const consoleManifest = {
  name: 'console',
  options: { console: consoleSection },
} satisfies SliceManifest;
