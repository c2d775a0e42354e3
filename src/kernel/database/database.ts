import type { Kysely, Transaction } from 'kysely';
import type { AnyWriter } from './any-writer.ts';
import type { FullText } from './full-text/full-text.ts';
import type { Statement } from './statement.ts';
import type { DatabaseStatistics } from './statistics.ts';

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
   * moment share one flush. When `work` throws, its own effects are undone and the error is passed on; others in the
   * same flush are not affected.
   *
   * `work` must await nothing but its writer: on SQLite it holds the only one, so that waiting for another transaction
   * inside it can never end; after some seconds without a statement it is undone with `TransactionTimeout`.
   * `work` may run again from its beginning (a conflict on PostgreSQL), so its only effects must be those of the
   * writer. A statement that fails dooms the transaction, also when the error is caught: it rejects with that error.
   */
  transaction<S, T>(work: (writer: Writer<S>) => Promise<T>): Promise<T>;

  /**
   * Runs prepared statements as one transaction, without a round trip for each: for hot paths. Statements are
   * portable SQL with `?` placeholders. Batches take effect in the order of the calls.
   */
  batch(statements: readonly Statement[]): Promise<void>;

  /** An index of texts that a migration has made with `SchemaBuilder.fullText`. */
  fullText(name: string): FullText;

  /**
   * Runs `change` in a transaction that no other process's schema change overlaps. For `migrate` and nobody else.
   * Changing an existing table is safe only while no other process uses it.
   */
  changeSchema<T>(change: (schema: SchemaBuilder) => Promise<T>): Promise<T>;

  /** What has been asked of the database so far, for tests and metrics. */
  readonly statistics: Readonly<DatabaseStatistics>;

  /** Waits for everything that was asked for before, then lets go of the database. May be called again. */
  close(): Promise<void>;
}

/** One step of the schema. Forward only; slices own theirs and they are merged in the order of composition. */
export interface Migration {
  /** Unique over all slices: `accounts/0001-users`. */
  readonly name: string;
  up(schema: SchemaBuilder): Promise<void>;
}

/** What a migration may use. */
export interface SchemaBuilder {
  /**
   * Portable types: `text` (ordered by code point), `integer` (32 bits), `bigint` (safe integers: ids, positions,
   * times), `bytea`, `double precision`. A bigint that alone is the primary key may be
   * `generatedByDefaultAsIdentity()`.
   */
  readonly db: Kysely<never>;
  /**
   * Put at the end of a `createTable` whose primary key is all that the rows are found by: on SQLite it stores the
   * rows in the key's own tree (`WITHOUT ROWID`), so that the key is not stored twice.
   */
  clustered<T>(builder: T): T;
  /** Makes an index of texts. @param name a plain identifier, unique among tables */
  fullText(name: string): Promise<void>;
  /** Runs portable SQL as it stands. */
  run(sql: string): Promise<void>;
}

/** The same writer, for the tables of the slice that asks. */
export function writerFor<S>(writer: AnyWriter): Writer<S> {
  return writer as Writer<S>;
}
