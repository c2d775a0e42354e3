import type { SliceManifest } from '../kernel/slices/index.ts';
import { searchMigrations } from './migrations.ts';
import { searchRoomRows } from './room-rows.ts';

export const searchManifest: SliceManifest = {
  name: 'search',
  migrations: searchMigrations,
  roomRows: searchRoomRows,
};
