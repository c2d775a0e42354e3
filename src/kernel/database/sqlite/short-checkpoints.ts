import type { Database } from '../database.ts';
import { checkpointPages } from './connection.ts';

/** Pages (4 KiB) in the write-ahead log after which a checkpoint runs during background work. */
const shortPages = 500;

/**
 * Makes checkpoints of the write-ahead log shorter and more frequent during background work. A purge changes pages all over
 * the file, so a checkpoint of 32 MiB of them would block all other writers for long.
 */
export class ShortCheckpoints {
  readonly #database: Pick<Database, 'batch'>;
  #running = 0;

  constructor(database: Pick<Database, 'batch'>) {
    this.#database = database;
  }

  /** Runs work. Checkpoints stay short until all work that runs at the same time has ended. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      if (this.#running === 1) await this.#set(shortPages);
      return await work();
    } finally {
      this.#running -= 1;
      if (this.#running === 0) await this.#set(checkpointPages);
    }
  }

  /**
   * Sets after how many pages a checkpoint runs. Never rejects: when the database is overloaded or closed, the previous
   * number stays in use.
   */
  async #set(pages: number): Promise<void> {
    const sql = `pragma wal_autocheckpoint = ${pages}`;
    await this.#database.batch([{ sql, rows: [[]] }]).catch(() => undefined);
  }
}
