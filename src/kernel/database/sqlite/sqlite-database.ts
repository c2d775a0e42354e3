import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateTableBuilder, type Kysely, sql } from 'kysely';
import { type Clock, systemClock } from '../../clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { StartFailure } from '../../start-failure.ts';
import { runAfterCommit } from '../after-commit.ts';
import type { Database, Reader, SchemaBuilder, Writer } from '../database.ts';
import type { FullText } from '../full-text/full-text.ts';
import { IdleGuard } from '../idle-guard.ts';
import { NumberBounds } from '../number-bounds.ts';
import { type Execute, type Outcome, readerOver, writerOver } from '../queries.ts';
import { raisingBounds } from '../raising-bounds.ts';
import type { Statement } from '../statement.ts';
import { noStatistics, timed } from '../statistics.ts';
import { TransactionWork } from '../transaction-work.ts';
import { CommitQueue, type GroupLimits } from './commit-queue.ts';
import { SqliteConnection, type SqliteFile } from './connection.ts';
import { BatchEntry, TransactionEntry } from './entries.ts';
import { plainError, startProblem, typedError } from './errors.ts';
import { releaseFreePages } from './free-space.ts';
import { SqliteFullText, sqliteFullTextTable } from './full-text.ts';
import { sqliteGrammar } from './grammar.ts';
import type { Group } from './group.ts';
import { outcomeOf } from './rows.ts';
import { ScannerPool } from './scanner-pool.ts';
import { sendable } from './sendable.ts';
import { ShortCheckpoints } from './short-checkpoints.ts';
import { WorkerClient } from './worker-client.ts';

/** Settings of a SQLite database; times in milliseconds. */
export interface SqliteOptions {
  readonly kind: 'sqlite';
  /**
   * Path of the file, which is created when missing. SQLite creates two more files beside it. `:memory:` stands for a
   * temporary file, which is deleted when the database is closed.
   */
  readonly path: string;
  /**
   * When writes are flushed to the disk. `never` is for tests: a crash of the machine (not of the process) may destroy
   * the file.
   */
  readonly flush?: SqliteFile['flush'];
  /** Maximum time between two statements of a transaction. */
  readonly idleLimit?: number;
  /** Overrides of the default limits of groups of commits. */
  readonly group?: Partial<GroupLimits>;
  /** Milliseconds to wait for another process that has the file exclusively; blocks the thread. */
  readonly claimTimeout?: number;
}

/** Default limits of groups of commits. */
const defaultGroup: GroupLimits = { entries: 1_000, duration: 50, waiting: 100_000 };

/** Default maximum milliseconds between two statements of a transaction. */
const defaultIdleLimit = 10_000;

/**
 * A SQLite file: one connection in a worker thread writes, one on the calling thread reads, and others in
 * worker threads scan. See docs/decisions/0002 and 0003.
 */
export class SqliteDatabase implements Database {
  readonly statistics = noStatistics();
  readonly numberBounds: NumberBounds;
  readonly #idleLimit: number;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #writing: WorkerClient;
  readonly #reading: SqliteConnection;
  readonly #scanning: ScannerPool;
  readonly #queue: CommitQueue;
  readonly #shortCheckpoints = new ShortCheckpoints(this);
  readonly #reader: Kysely<unknown>;
  readonly #scanner: Kysely<unknown>;
  #closing: Promise<void> | undefined;
  #afterClose: (() => void) | undefined;

  private constructor(options: SqliteOptions, writing: WorkerClient, log: Logger, clock: Clock) {
    const file = fileOf(options);
    this.#idleLimit = options.idleLimit ?? defaultIdleLimit;
    this.#log = log;
    this.#clock = clock;
    this.numberBounds = new NumberBounds({ batch: (statements) => this.batch(statements), clock, log });
    this.#writing = writing;
    this.#reading = new SqliteConnection(file, 'reading');
    this.#scanning = new ScannerPool(file, log, clock);
    this.#queue = new CommitQueue(writing, clock, { ...defaultGroup, ...options.group }, this.statistics);
    this.statistics.timings.pools = () => ({ writer: this.#queue.use });
    this.#reader = readerOver(sqliteGrammar, this.#read);
    this.#scanner = readerOver(sqliteGrammar, this.#scan);
  }

  /**
   * Opens or creates the file.
   * @param afterClose called after the database was closed
   * @throws StartFailure when the file cannot be opened or created
   */
  static async open(
    given: SqliteOptions,
    log: Logger,
    clock: Clock = systemClock,
    afterClose?: () => void,
  ): Promise<SqliteDatabase> {
    const { options, remove } = given.path === ':memory:' ? temporaryFile(given) : { options: given };
    let lost = (error: Error) => log.debug({ err: error }, 'Could not open the database');
    const writing = new WorkerClient({ file: fileOf(options), access: 'writing' }, (error) => lost(error));
    try {
      // The file must exist with its mode before a reader opens it.
      await writing.send([]);
      const database = new SqliteDatabase(options, writing, log, clock);
      database.#afterClose = remove ?? afterClose;
      lost = (error) =>
        log.fatal({ err: error }, 'The thread that writes to the database ended unexpectedly');
      return database;
    } catch (error) {
      await writing.close();
      remove?.();
      throw new StartFailure(`cannot open the database ${options.path}: ${startProblem(error)}`, {
        cause: error,
      });
    }
  }

  reader<S>(): Reader<S> {
    return this.#reader as unknown as Reader<S>;
  }

  scanner<S>(): Reader<S> {
    return this.#scanner as unknown as Reader<S>;
  }

  transaction<S, T>(work: (writer: Writer<S>) => Promise<T>): Promise<T> {
    return this.#transaction(work, this.#idleLimit);
  }

  batch(statements: readonly Statement[]): Promise<void> {
    const due = this.numberBounds.due();
    const written = due ? [...statements, due.statement] : statements;
    return new Promise((settle, reject) => {
      this.statistics.batches += 1;
      for (const { rows } of written) this.statistics.writes += rows.length;
      const resolve = () => {
        due?.onDisk();
        settle();
      };
      this.#queue.add(new BatchEntry(written, { resolve, reject }));
    });
  }

  fullText(name: string): FullText {
    return new SqliteFullText(this.#scanner, name);
  }

  async changeSchema<T>(change: (schema: SchemaBuilder) => Promise<T>): Promise<T> {
    const result = await this.#transaction(
      (writer: Writer<never>) => change(schemaBuilder(writer)),
      Number.POSITIVE_INFINITY,
    );
    this.#reading.forgetStatements();
    await this.#writing.send([{ kind: 'forget-statements' }]);
    await this.#scanning.forgetStatements();
    return result;
  }

  async size(): Promise<number> {
    const { rows } = await sql<{
      bytes: number;
    }>`select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()`.execute(
      this.#reader,
    );
    return rows[0]?.bytes ?? 0;
  }

  async version(): Promise<string> {
    const { rows } = await sql<{ version: string }>`select sqlite_version() as version`.execute(this.#reader);
    return rows[0]?.version ?? '';
  }

  async releaseSpace(signal: AbortSignal): Promise<number> {
    const released = await this.inBackground(() => releaseFreePages(this, signal));
    this.statistics.releasedBytes += released;
    return released;
  }

  inBackground<T>(work: () => Promise<T>): Promise<T> {
    return this.#shortCheckpoints.during(work);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#queue.close();
    await this.#scanning.close();
    this.#reading.close();
    await this.#writing.close();
    this.#afterClose?.();
  }

  #transaction<S, T>(work: (writer: Writer<S>) => Promise<T>, idleLimit: number): Promise<T> {
    let writer: Writer<S>;
    const begin = (group: Group) => {
      this.statistics.transactions += 1;
      const transactionWork = new TransactionWork(
        this.#writeIn(group),
        new IdleGuard(this.#clock, idleLimit),
      );
      writer = writerOver(this.reader<S>(), sqliteGrammar, transactionWork.execute);
      return {
        transactionWork,
        work: () => raisingBounds(this.numberBounds, writer, transactionWork.execute, work),
      };
    };
    return new Promise((settle, reject) => {
      const resolve = (value: T) => {
        runAfterCommit(writer, this.#log);
        settle(value);
      };
      this.#queue.add(new TransactionEntry(begin, { resolve, reject }));
    });
  }

  #writeIn(group: Group): Execute {
    return async (statement, parameters) => {
      this.statistics.writes += 1;
      const operation = { kind: 'query' as const, sql: statement, parameters: sendable(parameters) };
      const table = await timed(this.statistics.timings, 'write', () => group.send(operation));
      return outcomeOf(table!);
    };
  }

  readonly #read = async (statement: string, parameters: readonly unknown[]): Promise<Outcome> => {
    this.statistics.reads += 1;
    const { observe } = this.statistics.timings;
    const began = observe ? performance.now() : 0;
    try {
      return outcomeOf(this.#reading.run(statement, parameters));
    } catch (error) {
      throw typedError(plainError(error));
    } finally {
      observe?.('read', performance.now() - began);
    }
  };

  readonly #scan = async (statement: string, parameters: readonly unknown[]): Promise<Outcome> => {
    this.statistics.scans += 1;
    return outcomeOf(
      await timed(this.statistics.timings, 'scan', () => this.#scanning.run(statement, sendable(parameters))),
    );
  };
}

const fileOf = ({ path, flush }: SqliteOptions): SqliteFile => ({ path, flush: flush ?? 'every-commit' });

/**
 * Returns the options of a temporary file, and a function that removes the file. The file stands in for an in-memory
 * database, which several connections cannot share.
 */
function temporaryFile(options: SqliteOptions): { options: SqliteOptions; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-memory-'));
  return {
    options: { ...options, path: join(folder, 'memory.db'), flush: 'never' },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function schemaBuilder(writer: Writer<never>): SchemaBuilder {
  return {
    db: writer,
    clustered: (builder) =>
      builder instanceof CreateTableBuilder
        ? (builder.modifyEnd(sql`without rowid`) as typeof builder)
        : builder,
    fullText: async (name) => {
      await sql.raw(sqliteFullTextTable(name)).execute(writer);
    },
    run: async (statement) => {
      await sql.raw(statement).execute(writer);
    },
  };
}
