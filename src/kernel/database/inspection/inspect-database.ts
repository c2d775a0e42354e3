import type { Logger } from '../../observability/index.ts';
import type { DatabaseOptions } from '../open.ts';
import type { DatabaseFacts } from './database-facts.ts';
import { inspectSqlite } from './inspect-sqlite.ts';

/**
 * Reads the facts of a database without creating or changing anything; a server may be running on it.
 * @returns `undefined` when the SQLite file does not exist
 * @throws Error when it cannot be read; on PostgreSQL its `code` is the SQLSTATE or the error code of the operating
 * system
 */
export async function inspectDatabase(
  options: DatabaseOptions,
  log: Logger,
): Promise<DatabaseFacts | undefined> {
  if (options.kind === 'sqlite') return inspectSqlite(options.path);
  // Loads the driver only when it is used.
  const { inspectPostgres } = await import('./inspect-postgres.ts');
  return inspectPostgres(options, log);
}
