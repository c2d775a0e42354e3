import { DatabaseSync } from 'node:sqlite';

/** Bytes in use in a database file that nobody else has open, after what is in its write-ahead log has moved in. */
export function settledSqliteBytes(file: string): number {
  const database = new DatabaseSync(file);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  const pragma = (name: string) => Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  const bytes = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size');
  database.close();
  return bytes;
}
