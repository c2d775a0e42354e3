export { joinDatabases } from './join-databases.ts';
export {
  describeDatabase,
  type MovedTable,
  type MoveProgress,
  type MoveResult,
  moveDatabase,
} from './move-database.ts';
export { type MoveMark, readMark, removeMark, requireUnmarked, writeMark } from './move-marks.ts';
export { type SplitDeps, splitDatabase } from './split-database.ts';
export type { TextIndex } from './text-index.ts';
export type { TransferDatabase } from './transfer-database.ts';
