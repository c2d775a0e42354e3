import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** A row that waits to be written. */
interface Entry {
  readonly id: string;
  readonly json: string;
  /** Called when the row is on disk. */
  done(): void;
}

/**
 * A table in SQLite that is as durable as Hearth's (`synchronous=FULL`) and does nothing else: rows that are
 * ready in the same turn of the event loop share one transaction. It runs on the main thread, because
 * flushing the write-ahead log takes less time than a message to another thread and back.
 */
export class Journal {
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  /** Rows that the next transaction writes. */
  #entries: Entry[] = [];

  /** @param file path of the database, which may already contain rows */
  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
    this.#database.exec(
      'CREATE TABLE IF NOT EXISTS entries (position INTEGER PRIMARY KEY, id TEXT NOT NULL, json TEXT NOT NULL)',
    );
    this.#insert = this.#database.prepare('INSERT INTO entries (id, json) VALUES (?, ?)');
  }

  /** Resolves once the row is on disk. */
  append(id: string, json: string): Promise<void> {
    return new Promise((done) => {
      this.#entries.push({ id, json, done });
      if (this.#entries.length === 1) setImmediate(() => this.#commit());
    });
  }

  #commit(): void {
    const entries = this.#entries;
    this.#entries = [];
    this.#database.exec('BEGIN IMMEDIATE');
    for (const { id, json } of entries) this.#insert.run(id, json);
    this.#database.exec('COMMIT');
    for (const { done } of entries) done();
  }
}
