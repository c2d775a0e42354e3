import type { DatabaseOptions } from '../../../src/kernel/database/index.ts';

/** Returns the value of the option `database` for a test database. */
export function databaseOption(options: DatabaseOptions): {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
} {
  if (options.kind === 'sqlite') return { name: 'sqlite3', args: { database: options.path } };
  const { host, port, user, password, database } = options;
  return { name: 'psycopg2', args: { host, port, user, password, dbname: database } };
}
