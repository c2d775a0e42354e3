import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../clock.ts';
import type { Logger, Metrics } from '../observability/index.ts';
import { StartFailure, startStep } from '../start-failure.ts';
import type { Database } from './database.ts';
import { reportSizes, reportStatistics } from './metrics.ts';
import type { PostgresOptions } from './postgres/options.ts';
import type { LeaseUse } from './postgres/postgres-database.ts';
import { claimFile } from './sqlite/claim.ts';
import { SqliteDatabase, type SqliteOptions } from './sqlite/sqlite-database.ts';
import { requireUnmarked } from './transfer/move-marks.ts';

/** Kind and settings of a database. */
export type DatabaseOptions = SqliteOptions | PostgresOptions;

/** Dependencies of every database. */
export interface DatabaseEnvironment {
  readonly log: Logger;
  /** Times the idle limit of transactions and periodic work; by default the system clock. */
  readonly clock?: Clock;
  readonly metrics?: Metrics;
}

/** Called when another process has taken the lease of this one. */
export type OnLost = (error: Error) => void;

/** Opens the database; rejects with the reason when that fails. Does not change the schema: see `migrate`. */
export function openDatabase(options: DatabaseOptions, environment: DatabaseEnvironment): Promise<Database> {
  return openWithMetrics(options, environment, undefined);
}

/**
 * Opens the database exclusively for a process that writes: two servers would assign the same positions and run each
 * other's jobs. Another process that opens it exclusively waits some seconds for this one to close it; if this one
 * does not, the other is refused. SQLite: a lock on a file. PostgreSQL: a lease (decision 0131), which another process
 * can take when this one was paused or disconnected for longer than the lease; all writes of this one then fail.
 * @param onLost called once when another process has taken the lease; the process should exit
 * @throws DatabaseInUse when another process has the database
 * @throws StartFailure when it was moved to another database, or a move or a restore that fills it is incomplete
 */
export async function openDatabaseExclusively(
  options: DatabaseOptions,
  environment: DatabaseEnvironment,
  onLost: OnLost,
): Promise<Database> {
  const database = await openMarkedDatabaseExclusively(options, environment, onLost);
  try {
    await requireUnmarked(database, options.kind);
    return database;
  } catch (error) {
    await database.close();
    throw error;
  }
}

/**
 * Opens a database as `openDatabaseExclusively` does, but also accepts a database that a move has marked. Servers
 * refuse to start on a marked database.
 */
export function openMarkedDatabaseExclusively(
  options: DatabaseOptions,
  environment: DatabaseEnvironment,
  onLost: OnLost,
): Promise<Database> {
  return openWithMetrics(options, environment, { how: 'take', onLost });
}

/**
 * Opens the database for a further process, beside the process that has opened it exclusively. The writes of the
 * further process depend on the lease of the first one: they fail as soon as another process has taken the lease. Only
 * on PostgreSQL.
 * @param onLost called once when another process has taken the lease
 * @throws StartFailure when no process has the database exclusively, or the database is a SQLite file
 */
export function openDatabaseBeside(
  options: DatabaseOptions,
  environment: DatabaseEnvironment,
  onLost: OnLost,
): Promise<Database> {
  if (options.kind === 'sqlite') throw new StartFailure('only one process can use an SQLite database');
  return openWithMetrics(options, environment, { how: 'join', onLost });
}

async function openWithMetrics(
  options: DatabaseOptions,
  environment: DatabaseEnvironment,
  lease: LeaseUse | undefined,
): Promise<Database> {
  const database = await (options.kind === 'sqlite'
    ? openSqlite(options, environment, lease !== undefined)
    : openPostgres(options, environment, lease));
  if (environment.metrics) {
    reportStatistics(environment.metrics, database.statistics);
    reportSizes(environment.metrics, database, options, environment.clock ?? systemClock);
  }
  return database;
}

async function openSqlite(
  options: SqliteOptions,
  { log, clock = systemClock }: DatabaseEnvironment,
  isExclusive: boolean,
): Promise<Database> {
  if (!isExclusive || options.path === ':memory:') return SqliteDatabase.open(options, log, clock);
  const release = claimFile(options.path, options.claimTimeout);
  try {
    requireRestored(options.path);
    return await SqliteDatabase.open(options, log, clock, release);
  } catch (error) {
    release();
    throw error;
  }
}

/** Name of the file that `hearth restore` prepares beside a SQLite database, and renames to it at the end. */
export const unfinishedRestoreOf = (path: string): string => `${path}.restoring`;

/** @throws StartFailure when a restore of the file was interrupted */
function requireRestored(path: string): void {
  const unfinished = unfinishedRestoreOf(path);
  if (!existsSync(unfinished)) return;
  throw new StartFailure(
    `the restore of the database ${path} was interrupted: call the same "hearth restore" again, or delete ${unfinished} to use the database as it was before`,
  );
}

async function openPostgres(
  options: PostgresOptions,
  { log, clock = systemClock }: DatabaseEnvironment,
  lease: LeaseUse | undefined,
): Promise<Database> {
  // Loads the driver only when it is used, for start-up time and memory.
  const { PostgresDatabase } = await import('./postgres/postgres-database.ts');
  return startStep('cannot open the PostgreSQL database', () =>
    PostgresDatabase.open(options, log, clock, lease),
  );
}
