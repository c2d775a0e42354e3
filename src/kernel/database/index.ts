export { afterCommit } from './after-commit.ts';
export type { AnyWriter } from './any-writer.ts';
export {
  type AssignedNumbers,
  type CheckedStores,
  type CheckFindings,
  type CheckResult,
  checkDatabase,
  type DatabaseCheck,
  FindingCollector,
  numberChecks,
  rowsCheck,
  sqliteFileCheck,
} from './checks/index.ts';
export { dataStoreEntries } from './config.ts';
export * from './database.ts';
export {
  DatabaseClosed,
  DatabaseError,
  DatabaseInUse,
  DatabaseOverloaded,
  isDiskFull,
  isOutage,
  LeaseLost,
  TransactionTimeout,
  UniqueViolation,
} from './errors.ts';
export { FixedQuery } from './fixed-query.ts';
export type { FullText, TextDocument, TextSearch } from './full-text/full-text.ts';
export { foldText, TextQuery } from './full-text/grams.ts';
export type { DatabaseFacts } from './inspection/database-facts.ts';
export { inspectDatabase } from './inspection/inspect-database.ts';
export { appliedMigrations, migrate, NewerDatabase } from './migrate.ts';
export { databaseMigrations } from './migrations/index.ts';
export {
  type DatabaseEnvironment,
  type DatabaseOptions,
  openDatabase,
  openDatabaseBeside,
  openDatabaseExclusively,
  openMarkedDatabaseExclusively,
  unfinishedRestoreOf,
} from './open.ts';
export { databaseOptions } from './options.ts';
export { maxConnections } from './postgres/pool-sizes.ts';
export { withSnapshot } from './snapshot.ts';
export { claimFile } from './sqlite/claim.ts';
export { compactSqliteFile } from './sqlite/compact.ts';
export { type CopyProgress, copySqliteFile } from './sqlite/copy.ts';
export type { SqlValue, Statement } from './statement.ts';
export type { DatabaseStatistics } from './statistics.ts';
export { type TableSize, tableSizes } from './table-sizes.ts';
export {
  describeDatabase,
  joinDatabases,
  type MovedTable,
  type MoveMark,
  type MoveProgress,
  type MoveResult,
  moveDatabase,
  readMark,
  removeMark,
  requireUnmarked,
  splitDatabase,
  type TextIndex,
  type TransferDatabase,
  writeMark,
} from './transfer/index.ts';
export { requireMatchingStores, requireStores } from './transfer/store-marks.ts';
export { WriteCheck } from './write-check.ts';
