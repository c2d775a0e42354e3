import type { SliceManifest } from '../kernel/slices/index.ts';
import { erasureMigrations } from './erasure/migration.ts';
import { roomMigrations } from './migrations/index.ts';
import { roomEngineRows } from './room-rows.ts';

export const roomEngineManifest = {
  name: 'room-engine',
  migrations: [...roomMigrations, ...erasureMigrations],
  roomRows: roomEngineRows,
} satisfies SliceManifest;
