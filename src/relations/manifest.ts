import type { SliceManifest } from '../kernel/slices/index.ts';
import { relationMigrations } from './migrations.ts';
import { relationRoomRows } from './room-rows.ts';

export const relationsManifest = {
  name: 'relations',
  migrations: relationMigrations,
  roomRows: relationRoomRows,
} satisfies SliceManifest;
