export { afterCommit } from './after-commit.ts';
export type { AnyWriter } from './any-writer.ts';
export { dataStoreEntries } from './config.ts';
export * from './database.ts';
export {
  DatabaseClosed,
  DatabaseError,
  DatabaseOverloaded,
  isDiskFull,
  isOutage,
  LeaseLost,
  TransactionTimeout,
  UniqueViolation,
} from './errors.ts';
export type { FullText, TextDocument, TextSearch } from './full-text/full-text.ts';
export { foldText, TextQuery } from './full-text/grams.ts';
export { migrate, NewerDatabase } from './migrate.ts';
export { databaseMigrations } from './migrations/index.ts';
export {
  type DatabaseEnvironment,
  type DatabaseOptions,
  openDatabase,
  openDatabaseBeside,
  openDatabaseExclusively,
} from './open.ts';
export { databaseOptions } from './options.ts';
export { claimFile } from './sqlite/claim.ts';
export { type CopyProgress, copySqliteFile } from './sqlite/copy.ts';
export type { SqlValue, Statement } from './statement.ts';
export type { DatabaseStatistics } from './statistics.ts';
export { WriteCheck } from './write-check.ts';
