import type { Statement } from '../statement.ts';
import type { SqliteConnection } from './connection.ts';
import { type PlainError, plainError } from './errors.ts';
import type { Operation, Result } from './protocol.ts';

/** The statements of each operation that controls a transaction. */
const controls = {
  begin: ['begin immediate'],
  commit: ['commit'],
  savepoint: ['savepoint one'],
  release: ['release one'],
  undo: ['rollback to one', 'release one'],
  restart: ['rollback', 'begin immediate'],
};

/** Runs the operations of requests on a connection. */
export class OperationRunner {
  readonly #connection: SqliteConnection;
  readonly #access: 'reading' | 'writing';
  /**
   * The error that ended the transaction early: after some errors (a full disk) SQLite rolls back the whole
   * transaction.
   */
  #ending: Error | undefined;
  /** True between the beginning of a transaction and its first other operation. */
  #isUntouched = false;

  constructor(connection: SqliteConnection, access: 'reading' | 'writing') {
    this.#connection = connection;
    this.#access = access;
  }

  /** Returns one result for each operation, in order. */
  run(operations: readonly Operation[]): Result[] {
    const results: Result[] = [];
    let stopped: PlainError | undefined;
    for (const operation of operations) {
      if (stopped) {
        results.push({ error: stopped });
        continue;
      }
      try {
        results.push(this.#do(operation));
      } catch (error) {
        results.push({ error: plainError(error) });
        if (operation.kind in controls) stopped = this.#stop(error);
        else if (this.#access === 'writing' && !this.#connection.inTransaction)
          this.#ending ??= error as Error;
      }
    }
    return results;
  }

  /** Rolls back after a failed control operation; the remaining operations of the request are skipped. */
  #stop(error: unknown): PlainError {
    if (this.#connection.inTransaction) this.#connection.run('rollback', []);
    return plainError(error);
  }

  #do(operation: Operation): Result {
    if (operation.kind === 'begin') this.#ending = undefined;
    else this.#requireTransaction(operation);
    const isUntouched = this.#isUntouched;
    this.#isUntouched = operation.kind === 'begin';
    switch (operation.kind) {
      case 'query':
        return { table: this.#connection.run(operation.sql, operation.parameters) };
      case 'batch':
        this.#batch(operation.statements, isUntouched);
        return {};
      case 'forget-statements':
        this.#connection.forgetStatements();
        return {};
      default:
        this.#control(operation.kind);
        return {};
    }
  }

  /**
   * Rejects operations after an early end of the transaction: otherwise they would be committed separately.
   */
  #requireTransaction({ kind }: Operation): void {
    if (this.#access === 'reading' || kind === 'forget-statements' || this.#connection.inTransaction) return;
    throw this.#ending ?? new Error('there is no transaction');
  }

  /**
   * Runs all statements or none. A savepoint makes SQLite copy each page before its first change, which makes
   * a batch more expensive (docs/benchmarks.md). So the first batch of a transaction uses none: it is undone
   * by restarting the transaction.
   */
  #batch(statements: readonly Statement[], isUntouched: boolean): void {
    if (!isUntouched) this.#control('savepoint');
    try {
      for (const { sql, rows } of statements) this.#connection.runEach(sql, rows);
      if (!isUntouched) this.#control('release');
    } catch (error) {
      if (this.#connection.inTransaction) this.#control(isUntouched ? 'restart' : 'undo');
      throw error;
    }
  }

  #control(kind: keyof typeof controls): void {
    for (const sql of controls[kind]) this.#connection.run(sql, []);
  }
}
