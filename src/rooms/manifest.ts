import type { SliceManifest } from '../kernel/slices/index.ts';
import { roomsSection } from './config.ts';

export const roomsManifest = {
  name: 'rooms',
  options: { rooms: roomsSection },
} satisfies SliceManifest;
