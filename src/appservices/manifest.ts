import type { SliceManifest } from '../kernel/slices/index.ts';
import { appservicesSection } from './config.ts';

export const appservicesManifest = {
  name: 'appservices',
  options: { appservices: appservicesSection },
} satisfies SliceManifest;
