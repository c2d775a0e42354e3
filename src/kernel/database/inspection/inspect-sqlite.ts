import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { StartFailure } from '../../start-failure.ts';
import { claimFile } from '../sqlite/claim.ts';
import type { DatabaseFacts } from './database-facts.ts';

/** Milliseconds to wait while another process locks the file. */
const busyTimeout = 2_000;

/**
 * Reads the facts of a SQLite file; a server may be running on it.
 * @returns `undefined` when there is no file
 * @throws Error when the file is not a database, or cannot be read
 */
export function inspectSqlite(path: string): DatabaseFacts | undefined {
  if (!existsSync(path)) return undefined;
  const database = new DatabaseSync(path, { readOnly: true, timeout: busyTimeout });
  try {
    const one = (sql: string) => Object.values(database.prepare(sql).get() ?? {})[0];
    const hasMigrations = one("select 1 from sqlite_master where name = 'schema_migrations'") !== undefined;
    const rows = hasMigrations ? database.prepare('select name from schema_migrations').all() : undefined;
    const hasMoves = one("select 1 from sqlite_master where name = 'database_moves'") !== undefined;
    const move = hasMoves ? database.prepare('select state, other from database_moves').get() : undefined;
    return {
      version: String(one('select sqlite_version()')),
      encoding: String(one('pragma encoding')),
      applied: rows?.map(({ name }) => String(name)),
      writer: isClaimed(path) ? 'a server of this machine' : undefined,
      ...(move && { move: { state: String(move['state']), other: String(move['other']) } }),
    };
  } finally {
    database.close();
  }
}

/** Whether a server has claimed the file. Without a lock file, none ever did. Does not create the lock file. */
function isClaimed(path: string): boolean {
  if (!existsSync(`${path}-lock`)) return false;
  try {
    claimFile(path, 0)();
    return false;
  } catch (error) {
    if (error instanceof StartFailure) return true;
    throw error;
  }
}
