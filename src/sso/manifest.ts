import type { SliceManifest } from '../kernel/slices/index.ts';
import { ssoSection } from './config.ts';

export const ssoManifest = {
  name: 'sso',
  options: { sso: ssoSection },
} satisfies SliceManifest;
