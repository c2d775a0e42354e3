import type { Kysely, Transaction } from 'kysely';

/** Reads, each statement by itself. `S` is the interface of the tables that a slice owns. */
export type Reader<S> = Kysely<S>;

/** Reads and writes inside one transaction; may be used wherever a `Reader` may. */
export type Writer<S> = Transaction<S>;

/**
 * The one database. Which kind it is, nobody outside this folder knows: SQL goes through Kysely with the portable
 * column types of `schema.ts`.
 */
export interface Database {
  /** For reads of what is committed. Short ones only: on SQLite they run on the calling thread. */
  reader<S>(): Reader<S>;

  /**
   * For reads that may take more than a few milliseconds (scans, full-text search, statistics): never blocks the
   * calling thread.
   */
  scanner<S>(): Reader<S>;

  /**
   * Runs `work` in a transaction and resolves once its effects are on disk. Transactions that are ready at the same
   * moment share one flush. `work` must only await the database: on SQLite it holds the only writer. When it throws,
   * its own effects are undone and the error is passed on; others in the same flush are not affected.
   */
  transaction<S, T>(work: (writer: Writer<S>) => Promise<T>): Promise<T>;

  /**
   * Runs prepared statements as one transaction, without a round trip for each: for hot paths. Statements are
   * portable SQL with `?` placeholders.
   */
  batch(statements: readonly Statement[]): Promise<void>;

  close(): Promise<void>;
}

/** Values that may be bound; no booleans (use 0 and 1) and no dates (use milliseconds). */
export type SqlValue = string | number | bigint | Uint8Array | null;

export interface Statement {
  readonly sql: string;
  /** Each entry is one execution with its parameters; at least one. */
  readonly rows: readonly (readonly SqlValue[])[];
}

/** One step of the schema. Forward only; slices own theirs and they are merged in the order of composition. */
export interface Migration {
  /** Unique over all slices: `accounts/0001-users`. */
  readonly name: string;
  up(schema: SchemaBuilder): Promise<void>;
}

/** What a migration may use. */
export interface SchemaBuilder {
  /** Portable types: `text`, `integer` (32 bits), `bigint` (safe integers: ids, positions, times), `bytea`, `double precision`. */
  readonly db: Kysely<never>;
  /**
   * Put at the end of a `createTable` whose primary key is all that the rows are found by: on SQLite it stores the
   * rows in the key's own tree (`WITHOUT ROWID`), so that the key is not stored twice.
   */
  clustered<T>(builder: T): T;
  /** Runs portable SQL as it stands. */
  run(sql: string): Promise<void>;
}
