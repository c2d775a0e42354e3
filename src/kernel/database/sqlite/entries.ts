import type { Statement } from '../statement.ts';
import type { TransactionWork } from '../transaction-work.ts';
import type { Entry } from './commit-queue.ts';
import type { Table } from './connection.ts';
import type { Group } from './group.ts';
import { sendableStatements } from './sendable.ts';

interface Settle<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** Minimum number of rows of a batch that is worth a flush of its own. */
const largeBatchRows = 32;

/**
 * Maximum rows per message to the writing thread: preparing a message with ten thousand rows takes many milliseconds.
 */
const maxRowsPerMessage = 1_000;

const rowsOf = (statements: readonly Statement[]) =>
  statements.reduce((count, { rows }) => count + rows.length, 0);

function* piecesOf(statements: readonly Statement[]): Generator<Statement> {
  for (const { sql, rows } of statements) {
    for (let start = 0; start < rows.length; start += maxRowsPerMessage) {
      yield { sql, rows: rows.slice(start, start + maxRowsPerMessage) };
    }
  }
}

/** A batch: all statements are known in advance. */
export class BatchEntry implements Entry {
  readonly isLarge: boolean;
  readonly #statements: readonly Statement[];
  readonly #settle: Settle<void>;
  readonly #isInPieces: boolean;
  #result: Promise<Table | undefined> | undefined;

  constructor(statements: readonly Statement[], settle: Settle<void>) {
    const rows = rowsOf(statements);
    this.#isInPieces = rows > maxRowsPerMessage;
    this.#statements = this.#isInPieces ? statements : sendableStatements(statements);
    this.isLarge = rows >= largeBatchRows;
    this.#settle = settle;
  }

  async run(group: Group): Promise<void> {
    if (this.#isInPieces) return this.#runInPieces(group);
    this.#result = group.hold({ kind: 'batch', statements: this.#statements });
    this.#result.catch(() => {});
  }

  committed(): void {
    if (this.#result) this.#result.then(() => this.#settle.resolve(), this.#settle.reject);
    else this.#settle.resolve();
  }

  /** Awaits each piece, so that this thread can do other work in between. */
  async #runInPieces(group: Group): Promise<void> {
    group.control('savepoint');
    try {
      for (const piece of piecesOf(this.#statements)) {
        await group.send({ kind: 'batch', statements: sendableStatements([piece]) });
      }
      group.control('release');
    } catch (error) {
      group.control('undo');
      throw error;
    }
  }

  failed(error: unknown): void {
    this.#settle.reject(error);
  }
}

/** A transaction whose statements arrive one by one. */
export class TransactionEntry<T> implements Entry {
  readonly isLarge = false;
  readonly #begin: (group: Group) => { readonly transactionWork: TransactionWork; work(): Promise<T> };
  readonly #settle: Settle<T>;
  #value: T | undefined;

  constructor(
    begin: (group: Group) => { transactionWork: TransactionWork; work(): Promise<T> },
    settle: Settle<T>,
  ) {
    this.#begin = begin;
    this.#settle = settle;
  }

  async run(group: Group): Promise<void> {
    group.control('savepoint');
    const { transactionWork, work } = this.#begin(group);
    try {
      this.#value = await transactionWork.run(work);
      group.control('release');
    } catch (error) {
      group.control('undo');
      throw error;
    }
  }

  committed(): void {
    this.#settle.resolve(this.#value as T);
  }

  failed(error: unknown): void {
    this.#settle.reject(error);
  }
}
