import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';

/** Returns the option `database` of a configuration for a test database. */
export function databaseOption(options: DatabaseOptions): object {
  if (options.kind === 'sqlite') return { database: { name: 'sqlite3', args: { database: options.path } } };
  const { host, port, user, password, database } = options;
  return { database: { name: 'psycopg2', args: { host, port, user, password, dbname: database } } };
}
