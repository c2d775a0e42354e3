import { DatabaseSync } from 'node:sqlite';

/**
 * Returns the used bytes of a database file that no process has open, after a checkpoint of its write-ahead
 * log.
 */
export function settledSqliteBytes(file: string): number {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const pragma = (name: string) => Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  const bytes = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  database.close();
  return bytes;
}
