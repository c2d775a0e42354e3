import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** How a file is opened. */
export interface SqliteFile {
  readonly path: string;
  /** What a commit waits for: that its pages are on disk, or nothing (a crash of the machine may cost the database). */
  readonly flush: 'every-commit' | 'never';
}

/** A result without the cost of an object for each row, so that it is cheap to send between threads. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly changes: number;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
}

/** How many prepared statements one connection keeps. */
const preparedLimit = 500;
/** How long a statement waits for another process's lock, in milliseconds. */
const busyTimeout = 15_000;
/**
 * Pages (of 4 KiB) in the write-ahead log after which they are moved into the database file. That is the slowest part
 * of a commit, and what is written again in the meantime is moved once: with 32 MiB instead of the usual 4, sends are
 * a fifth faster. A start after a crash reads the log again, some 20 ms at this size.
 */
const checkpointAfter = 8_000;
/** Memory for pages, in KiB (negative by SQLite's convention). It grows only as pages are used. */
const cacheSize = { reading: -16_384, writing: -16_384 };

/**
 * Makes the file for its owner alone: it holds messages and password hashes. SQLite gives the files beside it the same
 * mode. One that exists is not even opened, for closing it would take this process's locks away.
 */
function makePrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // It exists, or SQLite says what is wrong.
  }
}

/** One connection and its prepared statements. Everything here blocks the calling thread. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  /** Least recently used first. */
  readonly #prepared = new Map<string, Prepared>();

  constructor(file: SqliteFile, access: 'reading' | 'writing') {
    if (access === 'writing') makePrivately(file.path);
    this.#database = new DatabaseSync(file.path, {
      readOnly: access === 'reading',
      enableForeignKeyConstraints: false,
      enableDoubleQuotedStringLiterals: false,
      timeout: busyTimeout,
    });
    if (access === 'writing') {
      this.#database.exec('pragma journal_mode = wal');
      this.#database.exec(`pragma synchronous = ${file.flush === 'never' ? 'off' : 'full'}`);
      this.#database.exec(`pragma wal_autocheckpoint = ${checkpointAfter}`);
      this.#database.exec('pragma journal_size_limit = 67108864');
    }
    this.#database.exec(`pragma cache_size = ${cacheSize[access]}`);
    this.#database.exec('pragma temp_store = memory');
    this.#database.exec('pragma case_sensitive_like = on');
  }

  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Runs one statement. */
  run(sql: string, parameters: readonly unknown[]): Table {
    const { statement, columns } = this.#prepare(sql);
    if (columns.length === 0) {
      const { changes } = statement.run(...parameters.map(bindable));
      return { columns, rows: [], changes: Number(changes) };
    }
    const rows = statement.all(...parameters.map(bindable)) as unknown as unknown[][];
    return { columns, rows, changes: rows.length };
  }

  /** Runs one statement once for each of `rows`, and forgets what it returns. */
  runEach(sql: string, rows: readonly (readonly unknown[])[]): void {
    const { statement } = this.#prepare(sql);
    for (const row of rows) statement.run(...row.map(bindable));
  }

  /** Must be called when tables have changed: prepared statements know their columns. */
  forgetStatements(): void {
    this.#prepared.clear();
    // A change by another connection is noticed when a statement runs, not yet when it is prepared.
    this.#database.prepare('select count(*) from sqlite_schema').get();
  }

  close(): void {
    this.#prepared.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql);
    if (known) {
      this.#prepared.delete(sql);
      this.#prepared.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    statement.setReturnArrays(true);
    const prepared = { statement, columns: statement.columns().map((column) => column.name) };
    this.#prepared.set(sql, prepared);
    const oldest = this.#prepared.keys().next();
    if (this.#prepared.size > preparedLimit && !oldest.done) this.#prepared.delete(oldest.value);
    return prepared;
  }
}

/** Numbers are bound as REAL by the platform; integers must be INTEGER, as they are on PostgreSQL. */
function bindable(value: unknown): string | number | bigint | Uint8Array | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (
    typeof value === 'string' ||
    typeof value === 'bigint' ||
    value === null ||
    value instanceof Uint8Array
  ) {
    return value;
  }
  throw new TypeError(`a ${typeof value} can not be bound`);
}
