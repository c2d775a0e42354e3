import type { Kysely, Transaction } from 'kysely';
import type { AnyWriter } from './any-writer.ts';
import type { FullText } from './full-text/full-text.ts';
import type { NumberBounds } from './number-bounds.ts';
import type { Statement } from './statement.ts';
import type { DatabaseStatistics } from './statistics.ts';

/** The kinds of database. */
export type DatabaseKind = 'sqlite' | 'postgres';

/** Reads outside of transactions: each statement by itself. `S` is the interface of the tables that a slice owns. */
export type Reader<S> = Kysely<S>;

/** Reads and writes inside one transaction; may be used wherever a `Reader` may. */
export type Writer<S> = Transaction<S>;

/**
 * The database. Only this folder knows its kind: SQL is written with Kysely and the portable column types of
 * `SchemaBuilder`.
 */
export interface Database {
  /** Returns query builders for short reads of committed data: on SQLite they run on the calling thread. */
  reader<S>(): Reader<S>;

  /**
   * Returns query builders for reads that may take more than a few milliseconds (scans, full-text search, statistics).
   * They never block the calling thread.
   */
  scanner<S>(): Reader<S>;

  /**
   * Runs `work` in a transaction and resolves once its effects are on disk. Transactions that are ready at the same
   * time share one flush. When `work` throws, its effects are rolled back and the error is passed on; other
   * transactions of the same flush are not affected.
   *
   * `work` must await only statements of its writer. On SQLite it holds the only writer, so it would wait forever for
   * another transaction. A transaction whose work sends no statement for some seconds is rolled back with
   * `TransactionTimeout`. `work` may run again from its beginning (after a conflict on PostgreSQL), so it must have no
   * side effects other than its writes. A failed statement fails the transaction, even if the error is caught.
   */
  transaction<S, T>(work: (writer: Writer<S>) => Promise<T>): Promise<T>;

  /**
   * Runs prepared statements as one transaction, without a round trip for each: for hot paths. Statements are
   * portable SQL with `?` placeholders. Batches take effect in the order of the calls.
   */
  batch(statements: readonly Statement[]): Promise<void>;

  /** Returns a full-text index that a migration has created with `SchemaBuilder.fullText`. */
  fullText(name: string): FullText;

  /**
   * Runs `change` in a transaction that excludes schema changes of other processes. Only for `migrate`, and for tables
   * that are needed before it runs. Changing an existing table is safe only while no other process uses it.
   */
  changeSchema<T>(change: (schema: SchemaBuilder) => Promise<T>): Promise<T>;

  /** Returns the bytes that the database takes on disk. */
  size(): Promise<number>;

  /** Returns the version of the database software. */
  version(): Promise<string>;

  /**
   * Releases the space of deleted rows to the file system, without blocking other operations for long.
   * @param signal ends the work early
   * @returns the number of released bytes
   */
  releaseSpace(signal: AbortSignal): Promise<number>;

  /**
   * Runs work that writes many rows in many transactions, for instance a purge, with little delay for other writers:
   * while it runs, SQLite checkpoints its write-ahead log in smaller parts.
   */
  inBackground<T>(work: () => Promise<T>): Promise<T>;

  /**
   * The bounds on disk of the numbers that this process assigns in memory, for example of ids. A bound is due when the
   * numbers come close to it; every write also raises the bounds that are due.
   */
  readonly numberBounds: NumberBounds;

  /** Counters of operations, for tests and metrics. */
  readonly statistics: Readonly<DatabaseStatistics>;

  /** Waits for all earlier operations, then closes the database. May be called again. */
  close(): Promise<void>;
}

/**
 * One change of the schema, which cannot be undone. Slices define their migrations; the composition merges them in
 * order.
 */
export interface Migration {
  /** Unique over all slices, for example `accounts/0001-users`. */
  readonly name: string;
  up(schema: SchemaBuilder): Promise<void>;
}

/** The operations available to migrations. */
export interface SchemaBuilder {
  /**
   * Portable column types: `text` (ordered by code point), `integer` (32 bits), `bigint` (safe integers: ids,
   * positions, times), `bytea`, `double precision`. A bigint that is the whole primary key may be
   * `generatedByDefaultAsIdentity()`.
   */
  readonly db: Kysely<never>;
  /**
   * Completes the builder of a table whose rows are found only by primary key: on SQLite the rows are then stored in
   * the tree of the key (`WITHOUT ROWID`), so that the key is not stored twice.
   */
  clustered<T>(builder: T): T;
  /** Creates a full-text index. @param name a plain identifier, unique among tables */
  fullText(name: string): Promise<void>;
  /** Runs portable SQL unchanged. */
  run(sql: string): Promise<void>;
}

/** Returns the same writer, typed for the tables of another slice. */
export function writerFor<S>(writer: AnyWriter): Writer<S> {
  return writer as Writer<S>;
}
