import type { Statement } from '../database.ts';
import type { SqliteConnection } from './connection.ts';
import { type PlainError, plainError } from './errors.ts';
import type { Operation, Result } from './protocol.ts';

const controls = {
  begin: ['begin immediate'],
  commit: ['commit'],
  savepoint: 'savepoint one',
  release: ['release one'],
  undo: ['rollback to one', 'release one'],
};

/** Does what a worker is asked for. */
export class OperationRunner {
  readonly #connection: SqliteConnection;
  readonly #access: 'reading' | 'writing';

  constructor(connection: SqliteConnection, access: 'reading' | 'writing') {
    this.#connection = connection;
    this.#access = access;
  }

  /** One result for each operation, in their order. */
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
        if (operation.kind !== 'query' && operation.kind !== 'batch') stopped = this.#stop(error);
      }
    }
    return results;
  }

  /** What was begun can not go on. */
  #stop(error: unknown): PlainError {
    if (this.#connection.inTransaction) this.#connection.run('rollback', []);
    return plainError(error);
  }

  #do(operation: Operation): Result {
    switch (operation.kind) {
      case 'query':
        this.#requireTransaction();
        return { table: this.#connection.run(operation.sql, operation.parameters) };
      case 'batch':
        this.#requireTransaction();
        this.#batch(operation.statements);
        return {};
      case 'forget-statements':
        this.#connection.forgetStatements();
        return {};
      case 'savepoint':
        this.#requireTransaction();
        this.#connection.run(controls.savepoint, []);
        return {};
      default:
        for (const sql of controls[operation.kind]) this.#connection.run(sql, []);
        return {};
    }
  }

  /** Some errors (a full disk) end the transaction: what follows must not be committed by itself. */
  #requireTransaction(): void {
    if (this.#access === 'writing' && !this.#connection.inTransaction) {
      throw new Error('the transaction was rolled back by an earlier error');
    }
  }

  #batch(statements: readonly Statement[]): void {
    this.#connection.run(controls.savepoint, []);
    try {
      for (const { sql, rows } of statements) this.#connection.runEach(sql, rows);
      this.#connection.run('release one', []);
    } catch (error) {
      if (this.#connection.inTransaction) for (const sql of controls.undo) this.#connection.run(sql, []);
      throw error;
    }
  }
}
