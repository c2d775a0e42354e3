import { type Clock, systemClock } from '../clock.ts';
import type { Logger, Metrics } from '../observability/index.ts';
import { startStep } from '../start-failure.ts';
import type { Database } from './database.ts';
import { reportStatistics } from './metrics.ts';
import type { PostgresOptions } from './postgres/options.ts';
import { SqliteDatabase, type SqliteOptions } from './sqlite/sqlite-database.ts';

/** Kind and settings of a database. */
export type DatabaseOptions = SqliteOptions | PostgresOptions;

/** Dependencies of every database. */
export interface DatabaseEnvironment {
  readonly log: Logger;
  /** Measures how long a transaction sends no statement. */
  readonly clock?: Clock;
  readonly metrics?: Metrics;
}

/** Opens the database; rejects with the reason when that fails. Does not change the schema: see `migrate`. */
export async function openDatabase(
  options: DatabaseOptions,
  environment: DatabaseEnvironment,
): Promise<Database> {
  const database = await openKind(options, environment);
  if (environment.metrics) reportStatistics(environment.metrics, database.statistics);
  return database;
}

async function openKind(
  options: DatabaseOptions,
  { log, clock = systemClock }: DatabaseEnvironment,
): Promise<Database> {
  if (options.kind === 'sqlite') return SqliteDatabase.open(options, log, clock);
  // Loads the driver only when it is used, for start-up time and memory.
  const { PostgresDatabase } = await import('./postgres/postgres-database.ts');
  return startStep('cannot open the PostgreSQL database', () => PostgresDatabase.open(options, log, clock));
}
