import { type Clock, systemClock } from '../clock.ts';
import type { Logger, Metrics } from '../observability/index.ts';
import { startStep } from '../start-failure.ts';
import type { Database } from './database.ts';
import { reportStatistics } from './metrics.ts';
import type { PostgresOptions } from './postgres/options.ts';
import { SqliteDatabase, type SqliteOptions } from './sqlite/sqlite-database.ts';

/** Which database, and how it is used. */
export type DatabaseOptions = SqliteOptions | PostgresOptions;

/** What every database needs around it. */
export interface DatabaseEnvironment {
  readonly log: Logger;
  /** Measures how long transactions hang. */
  readonly clock?: Clock;
  readonly metrics?: Metrics;
}

/** Opens the database, or rejects with what is wrong with it. The schema is left as it is: see `migrate`. */
export async function openDatabase(
  options: DatabaseOptions,
  surroundings: DatabaseEnvironment,
): Promise<Database> {
  const database = await openKind(options, surroundings);
  if (surroundings.metrics) reportStatistics(surroundings.metrics, database.statistics);
  return database;
}

async function openKind(
  options: DatabaseOptions,
  { log, clock = systemClock }: DatabaseEnvironment,
): Promise<Database> {
  if (options.kind === 'sqlite') return SqliteDatabase.open(options, log, clock);
  // Its driver is loaded only where it is used: start-up time and memory.
  const { PostgresDatabase } = await import('./postgres/postgres-database.ts');
  return startStep('the PostgreSQL database can not be opened', () =>
    PostgresDatabase.open(options, log, clock),
  );
}
