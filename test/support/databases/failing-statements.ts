import type { Database, Statement, Writer } from '../../../src/kernel/database/index.ts';
import { PostgresDatabase } from '../../../src/kernel/database/postgres/postgres-database.ts';
import { SqliteDatabase } from '../../../src/kernel/database/sqlite/sqlite-database.ts';

/** SQL that every database rejects, so that its transaction fails as after any other failed statement. */
const rejectedSql = 'statement that a test replaces to make it fail';

const prototypes = [SqliteDatabase.prototype, PostgresDatabase.prototype] as const;

/**
 * Makes single statements of transactions and batches fail, in all databases of this process. A batch counts as one
 * statement. Reads outside of transactions do not fail.
 */
export class FailingStatements {
  readonly #originals = prototypes.map(({ transaction, batch }) => ({ transaction, batch }));
  /** Number of statements until the one that fails; 0: none fails. */
  #left = 0;

  constructor() {
    const isNext = () => this.#left > 0 && --this.#left === 0;
    for (const [index, prototype] of prototypes.entries()) {
      const { transaction, batch } = this.#originals[index]!;
      prototype.transaction = function <S, T>(this: Database, work: (writer: Writer<S>) => Promise<T>) {
        const withFault = (writer: Writer<S>) => work(rejecting(writer, isNext));
        return transaction.call(this as never, withFault as never) as Promise<T>;
      };
      prototype.batch = function (this: Database, statements: readonly Statement[]) {
        const written = isNext() ? [...statements, { sql: rejectedSql, rows: [[]] }] : statements;
        return batch.call(this as never, written);
      };
    }
  }

  /** Makes the statement with this number fail, counted from 1 from now on. */
  failAt(number: number): void {
    this.#left = number;
  }

  /** Whether the statement that `failAt` has chosen has failed. Also true before `failAt` and after `end`. */
  get hasFailed(): boolean {
    return this.#left === 0;
  }

  /** Lets all further statements succeed. */
  end(): void {
    this.#left = 0;
  }

  /** Removes the faults from the databases. */
  remove(): void {
    for (const [index, prototype] of prototypes.entries()) Object.assign(prototype, this.#originals[index]);
  }
}

/** Replaces the SQL of a statement if `isNext` returns true for it. @returns the writer */
function rejecting<S>(writer: Writer<S>, isNext: () => boolean): Writer<S> {
  const executor = writer.getExecutor();
  const { executeQuery } = executor;
  executor.executeQuery = (query, ...rest) =>
    executeQuery.call(
      executor,
      isNext() ? { ...query, sql: rejectedSql, parameters: [] } : query,
      ...rest,
    ) as never;
  return writer;
}
