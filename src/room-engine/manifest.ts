import type { SliceManifest } from '../kernel/slices/index.ts';
import { roomChecks, roomNumbers } from './checks/index.ts';
import { erasureMigrations } from './erasure/migration.ts';
import { roomMigrations } from './migrations/index.ts';
import { stateGroupMigrations } from './migrations/state-groups.ts';
import { roomEngineRows } from './room-rows.ts';

export const roomEngineManifest = {
  name: 'room-engine',
  migrations: [...roomMigrations, ...erasureMigrations],
  stateMigrations: stateGroupMigrations,
  roomRows: roomEngineRows,
  checks: roomChecks,
  assignedNumbers: roomNumbers,
} satisfies SliceManifest;
