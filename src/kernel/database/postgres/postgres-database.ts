import { type Kysely, sql } from 'kysely';
import { type Clock, systemClock } from '../../clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { runAfterCommit } from '../after-commit.ts';
import type { Database, Reader, SchemaBuilder, Writer } from '../database.ts';
import { DatabaseClosed } from '../errors.ts';
import type { FullText } from '../full-text/full-text.ts';
import { IdleGuard } from '../idle-guard.ts';
import { createLeaseTable } from '../lease-table.ts';
import { NumberBounds } from '../number-bounds.ts';
import { type Outcome, readerOver, writerOver } from '../queries.ts';
import { raisingBounds } from '../raising-bounds.ts';
import type { Statement } from '../statement.ts';
import { noStatistics, timed } from '../statistics.ts';
import { TransactionWork } from '../transaction-work.ts';
import { BatchQueue } from './batch-queue.ts';
import { Compaction } from './compaction/compaction.ts';
import { ConnectionPool } from './connection-pool.ts';
import { Conflict } from './errors.ts';
import { PostgresFullText, postgresFullTextTable } from './full-text.ts';
import { postgresGrammar } from './grammar.ts';
import type { PostgresOptions } from './options.ts';
import { FailedWithoutEffect, retrying } from './retry.ts';
import type { Session } from './session.ts';
import { WriterLease } from './writer-lease.ts';

const defaultIdleLimit = 10_000;
/** Key of the advisory lock for schema changes: an arbitrary constant, the same in every version. */
const schemaLock = 5_241_763_001;

/** Statements of a batch that are sent without a pause: preparing a thousand takes about 40 ms. */
const statementsPerPause = 100;

/** Begins a transaction in which all queries see the same state of the database. */
const beginSnapshot = 'begin isolation level repeatable read';
/** Begins a transaction in which each query sees all transactions that were committed before the query. */
const beginLatest = 'begin isolation level read committed';

/** How a process writes a database that other processes may open. */
export interface LeaseUse {
  /** `take`: takes the lease, so that no other process can take it. `join`: uses the lease of the process that has it. */
  readonly how: 'take' | 'join';
  /** Called once when another process has taken the lease: nothing can be written any more. */
  readonly onLost: (error: Error) => void;
}

/** A PostgreSQL server, used through a pool of connections. */
export class PostgresDatabase implements Database {
  readonly statistics = noStatistics();
  readonly numberBounds: NumberBounds;
  readonly #clock: Clock;
  readonly #idleLimit: number;
  readonly #log: Logger;
  readonly #pool: ConnectionPool;
  readonly #scanning: ConnectionPool;
  readonly #claiming: ConnectionPool;
  readonly #upkeep: ConnectionPool;
  readonly #compaction: Compaction;
  readonly #reader: Kysely<unknown>;
  readonly #scanner: Kysely<unknown>;
  readonly #batches = new BatchQueue((statements) => this.#commitBatch(statements));
  readonly #transactions = new Set<Promise<unknown>>();
  #lease: WriterLease | undefined;
  #closing: Promise<void> | undefined;

  private constructor(options: PostgresOptions, log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.numberBounds = new NumberBounds({ batch: (statements) => this.batch(statements), clock, log });
    this.#idleLimit = options.idleLimit ?? defaultIdleLimit;
    const { timings } = this.statistics;
    timings.pools = () => ({ main: this.#pool.occupancy, scanning: this.#scanning.occupancy });
    this.#pool = new ConnectionPool(options, 'main', log, timings);
    this.#scanning = new ConnectionPool(options, 'scanning', log, timings);
    this.#claiming = new ConnectionPool(options, 'claiming', log);
    this.#upkeep = new ConnectionPool(options, 'upkeep', log);
    this.#reader = readerOver(postgresGrammar, this.#read);
    this.#scanner = readerOver(postgresGrammar, this.#scan);
    this.#compaction = new Compaction({
      reader: this.#scanner,
      transaction: (work) => this.#transaction(work, beginLatest, this.#idleLimit),
      run: (statement) => this.#runAlone(statement),
      log,
      // Uses the machine's clock, because the rate of the log concerns the machine's disk.
      clock: systemClock,
      statistics: this.statistics,
    });
  }

  /**
   * Opens the database and connects once, so that wrong settings fail at start.
   * @param lease with it, every write fails once another process has taken the lease; absent: other processes may write too
   * @throws StartFailure when another process has the lease that is to be taken, or no process has the lease that is to
   * be joined
   */
  static async open(
    options: PostgresOptions,
    log: Logger,
    clock: Clock = systemClock,
    lease?: LeaseUse,
  ): Promise<PostgresDatabase> {
    const database = new PostgresDatabase(options, log, clock);
    try {
      await database.#pool.use(requireUtf8);
      if (lease) {
        await database.#claim(options, lease);
        await database.#pool.openMinimum();
      }
      return database;
    } catch (error) {
      await database.close();
      throw error instanceof FailedWithoutEffect ? error.error : error;
    }
  }

  reader<S>(): Reader<S> {
    return this.#reader as unknown as Reader<S>;
  }

  scanner<S>(): Reader<S> {
    return this.#scanner as unknown as Reader<S>;
  }

  transaction<S, T>(work: (writer: Writer<S>) => Promise<T>): Promise<T> {
    return this.#transaction(work, beginSnapshot, this.#idleLimit);
  }

  async batch(statements: readonly Statement[]): Promise<void> {
    if (this.#lease?.lost) throw this.#lease.lost;
    this.statistics.batches += 1;
    for (const { rows } of statements) this.statistics.writes += rows.length;
    await this.#batches.add(statements);
  }

  fullText(name: string): FullText {
    return new PostgresFullText(this.#scanner, name);
  }

  changeSchema<T>(change: (schema: SchemaBuilder) => Promise<T>): Promise<T> {
    return this.#transaction(
      async (writer: Writer<never>) => {
        await sql`select pg_advisory_xact_lock(${schemaLock})`.execute(writer);
        return change(schemaBuilder(writer));
      },
      beginLatest,
      Number.POSITIVE_INFINITY,
    );
  }

  async releaseSpace(signal: AbortSignal): Promise<number> {
    const released = await this.#compaction.run(signal);
    this.statistics.releasedBytes += released;
    return released;
  }

  inBackground<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  async size(): Promise<number> {
    const { rows } = await sql<{
      bytes: number;
    }>`select pg_database_size(current_database()) as bytes`.execute(this.#scanner);
    return Number(rows[0]?.bytes ?? 0);
  }

  async version(): Promise<string> {
    const { rows } = await sql<{
      version: string;
    }>`select current_setting('server_version') as version`.execute(this.#scanner);
    return rows[0]?.version ?? '';
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#batches.close();
    await Promise.allSettled(this.#transactions);
    await this.#lease?.close();
    const pools = [this.#pool, this.#scanning, this.#claiming, this.#upkeep];
    await Promise.all(pools.map((pool) => pool.close()));
  }

  async #claim(options: PostgresOptions, { how, onLost }: LeaseUse): Promise<void> {
    const { host = 'localhost', database = '', leaseTime, claimTimeout } = options;
    if (!(await this.#claiming.use(hasLeaseTable))) await this.changeSchema(({ db }) => createLeaseTable(db));
    const lease = { leaseTime, claimTimeout, database: `${database} on ${host}`, onLost };
    this.#lease = await WriterLease[how](this.#claiming, lease, this.#log);
  }

  /** Begins a transaction that writes. @throws LeaseLost */
  async #begin(session: Session, begin: string): Promise<void> {
    await (this.#lease ? this.#lease.begin(session, begin) : session.control(begin));
  }

  #transaction<S, T>(work: (writer: Writer<S>) => Promise<T>, begin: string, idleLimit: number): Promise<T> {
    if (this.#closing) return Promise.reject(new DatabaseClosed('the database is closed'));
    if (this.#lease?.lost) return Promise.reject(this.#lease.lost);
    const result = retrying(() =>
      this.#pool.use((session) => this.#attempt(session, work, begin, idleLimit)),
    );
    this.#transactions.add(result);
    const forget = () => this.#transactions.delete(result);
    result.then(forget, forget);
    return result;
  }

  /** Runs a transaction once. Rejects with `FailedWithoutEffect` when it certainly had no effect. */
  async #attempt<S, T>(
    session: Session,
    work: (writer: Writer<S>) => Promise<T>,
    begin: string,
    idleLimit: number,
  ): Promise<T> {
    this.statistics.transactions += 1;
    const transactionWork = new TransactionWork((statement, parameters) => {
      this.statistics.writes += 1;
      return timed(this.statistics.timings, 'write', () => session.run(statement, parameters));
    }, new IdleGuard(this.#clock, idleLimit));
    const writer = writerOver(this.reader<S>(), postgresGrammar, transactionWork.execute);
    const begun = this.#begin(session, begin);
    begun.catch(() => {});
    let value: T;
    try {
      value = await transactionWork.run(() =>
        raisingBounds(this.numberBounds, writer, transactionWork.execute, work),
      );
      await begun;
    } catch (error) {
      await session.control('rollback').catch(() => {});
      throw new FailedWithoutEffect(transactionWork.failure ?? (error as Error), error);
    }
    await this.#commit(session);
    runAfterCommit(writer, this.#log);
    return value;
  }

  async #commitBatch(statements: readonly Statement[]): Promise<void> {
    if (this.#lease?.lost) throw this.#lease.lost;
    await retrying(() =>
      this.#pool.use(async (session) => {
        const sent: Promise<unknown>[] = [];
        const send = (answer: Promise<unknown>) => {
          sent.push(answer);
          // A statement may fail while further ones are being sent: its error is handled after all are sent.
          answer.catch(() => {});
        };
        send(this.#begin(session, beginLatest));
        // Bounds are raised last, as in transactions, so that no writer waits for other rows while it has locked a bound.
        const due = this.numberBounds.due();
        if (due) this.statistics.writes += due.statement.rows.length;
        for (const { sql: text, rows } of due ? [...statements, due.statement] : statements) {
          for (const row of rows) {
            send(session.run(text, row));
            if (sent.length % statementsPerPause === 0) await new Promise(setImmediate);
          }
        }
        try {
          await Promise.all(sent);
        } catch (error) {
          await session.control('rollback').catch(() => {});
          throw new FailedWithoutEffect(error as Error, error);
        }
        await this.#commit(session);
        due?.onDisk();
      }),
    );
  }

  /** Runs a statement that PostgreSQL refuses inside transactions. */
  async #runAlone(statement: string): Promise<void> {
    if (this.#closing) throw new DatabaseClosed('the database is closed');
    if (this.#lease?.lost) throw this.#lease.lost;
    await this.#upkeep
      .use((session) => session.control(statement))
      .catch((error: unknown) => {
        throw error instanceof FailedWithoutEffect ? error.error : error;
      });
  }

  async #commit(session: Session): Promise<void> {
    this.statistics.flushes += 1;
    try {
      const command = await timed(this.statistics.timings, 'commit', () => session.control('commit'));
      if (command !== 'COMMIT') throw new Error(`the server answered ${command} to COMMIT`);
    } catch (error) {
      throw error instanceof Conflict ? new FailedWithoutEffect(error, error) : error;
    }
  }

  readonly #read = (statement: string, parameters: readonly unknown[]): Promise<Outcome> => {
    this.statistics.reads += 1;
    return this.#query(this.#pool, 'read', statement, parameters);
  };

  readonly #scan = (statement: string, parameters: readonly unknown[]): Promise<Outcome> => {
    this.statistics.scans += 1;
    return this.#query(this.#scanning, 'scan', statement, parameters);
  };

  #query(
    pool: ConnectionPool,
    part: 'read' | 'scan',
    statement: string,
    parameters: readonly unknown[],
  ): Promise<Outcome> {
    return retrying(() =>
      pool.use(async (session) => {
        try {
          return await timed(this.statistics.timings, part, () => session.run(statement, parameters));
        } catch (error) {
          throw new FailedWithoutEffect(error as Error, error);
        }
      }),
    );
  }
}

async function hasLeaseTable(session: Session): Promise<boolean> {
  const { rows } = await session.run(`select to_regclass('writer_lease') is not null as found`, []);
  return rows[0]?.['found'] === 1;
}

/**
 * Refuses a database whose encoding is not UTF-8: other encodings cannot store all characters, and some report that
 * only on insertion.
 */
async function requireUtf8(session: Session): Promise<void> {
  const { rows } = await session.run('show server_encoding', []);
  const encoding = rows[0]?.['server_encoding'];
  if (encoding !== 'UTF8') {
    throw new Error(
      `the database has the encoding ${encoding}: create one with ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
}

function schemaBuilder(writer: Writer<never>): SchemaBuilder {
  return {
    db: writer,
    clustered: (builder) => builder,
    fullText: async (name) => {
      for (const statement of postgresFullTextTable(name)) await sql.raw(statement).execute(writer);
    },
    run: async (statement) => {
      await sql.raw(statement).execute(writer);
    },
  };
}
