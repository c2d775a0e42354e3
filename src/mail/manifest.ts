import type { SliceManifest } from '../kernel/slices/index.ts';
import { mailSection } from './config.ts';

export const mailManifest = {
  name: 'mail',
  options: { mail: mailSection },
} satisfies SliceManifest;
