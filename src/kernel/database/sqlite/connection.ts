import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** How to open a file. */
export interface SqliteFile {
  readonly path: string;
  /**
   * Whether each commit waits until its pages are on disk. With `never`, a crash of the machine may destroy
   * the database.
   */
  readonly flush: 'every-commit' | 'never';
}

/** A result without an object for each row, so that it is cheap to send between threads. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  /** Number of written rows, or of returned rows when the statement returns any columns. */
  readonly changes: number;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
}

/** Maximum prepared statements of one connection. */
const maxPrepared = 500;
/** Milliseconds that a statement waits for another process's lock. */
const busyTimeout = 15_000;
/**
 * Pages (4 KiB) in the write-ahead log after which a checkpoint moves them into the database file. The
 * checkpoint is the slowest part of a commit, and pages written several times in the meantime are moved once:
 * with 32 MiB instead of the default 4, messages are sent in a fifth less time. After a crash, the start reads the log
 * again, about 20 ms at this size.
 */
export const checkpointPages = 8_000;
/** Memory for pages in KiB (negative by SQLite's convention). It is allocated as pages are used. */
const cacheSize = { reading: -8_192, writing: -8_192 };

/**
 * Creates the file with mode 0600: it contains messages and password hashes. SQLite creates the files beside
 * it with the same mode. An existing file is not opened, because closing it would release the locks of this
 * process.
 */
function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // The file exists, or SQLite will report the error.
  }
}

/** One connection with its prepared statements. All methods block the calling thread. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  /** Prepared statements by SQL, least recently used first. */
  readonly #prepared = new Map<string, Prepared>();
  /** Whether the schema may have changed since the statements were prepared. */
  #mayBeStale = false;
  /** The schema version with which the statements were prepared; `undefined` until it is read. */
  #schemaVersion: unknown;

  constructor(file: SqliteFile, access: 'reading' | 'writing') {
    if (access === 'writing') createPrivateFile(file.path);
    this.#database = new DatabaseSync(file.path, {
      readOnly: access === 'reading',
      enableForeignKeyConstraints: false,
      enableDoubleQuotedStringLiterals: false,
      timeout: busyTimeout,
    });
    if (access === 'writing') {
      this.#database.exec(`pragma synchronous = ${file.flush === 'never' ? 'off' : 'full'}`);
      this.#makeFreePagesReleasable();
      this.#database.exec('pragma journal_mode = wal');
      this.#database.exec(`pragma wal_autocheckpoint = ${checkpointPages}`);
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

  /** Runs one statement once for each of `rows` and discards the results. */
  runEach(sql: string, rows: readonly (readonly unknown[])[]): void {
    const { statement } = this.#prepare(sql);
    for (const row of rows) statement.run(...row.map(bindable));
  }

  /**
   * Forgets the prepared statements before the next one is used, if the schema has changed. Must be called after a
   * statement that may have changed the schema, because prepared statements cache their columns.
   */
  forgetStatements(): void {
    this.#mayBeStale = true;
  }

  /** Forgets the prepared statements, and reads the schema again, if it has changed since they were prepared. */
  #forgetStaleStatements(): void {
    this.#mayBeStale = false;
    const { schema_version: version } = this.#database.prepare('pragma schema_version').get() ?? {};
    if (version === this.#schemaVersion) return;
    this.#schemaVersion = version;
    this.#prepared.clear();
    // Makes SQLite read the new schema: running a statement detects changes by others; preparing one does not.
    this.#database.prepare('select count(*) from sqlite_schema').get();
  }

  close(): void {
    this.#prepared.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  /**
   * Sets `auto_vacuum` in new files, so that free space can be released to the file system (free-space.ts). Reads the mode
   * first, because SQLite writes and flushes it even if the file already has it.
   */
  #makeFreePagesReleasable(): void {
    const { auto_vacuum: mode } = this.#database.prepare('pragma auto_vacuum').get() ?? {};
    if (mode !== 2) this.#database.exec('pragma auto_vacuum = incremental');
  }

  #prepare(sql: string): Prepared {
    if (this.#mayBeStale) this.#forgetStaleStatements();
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
    if (this.#prepared.size > maxPrepared && !oldest.done) this.#prepared.delete(oldest.value);
    return prepared;
  }
}

/** Converts a parameter. The platform binds numbers as REAL; integers must be INTEGER as on PostgreSQL. */
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
  throw new TypeError(`cannot bind a ${typeof value}`);
}
