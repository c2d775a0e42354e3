import type { SliceManifest } from '../kernel/slices/index.ts';
import { searchSection } from './config.ts';
import { searchMigrations } from './migrations.ts';
import { searchRoomRows } from './room-rows.ts';
import { eventTextIndex } from './text-index.ts';

export const searchManifest = {
  name: 'search',
  options: { search: searchSection },
  migrations: searchMigrations,
  roomRows: searchRoomRows,
  textIndexes: [eventTextIndex],
} satisfies SliceManifest;
