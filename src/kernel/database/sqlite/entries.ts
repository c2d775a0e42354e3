import type { Statement } from '../database.ts';
import type { TransactionWork } from '../transaction-work.ts';
import type { Entry } from './commit-queue.ts';
import type { Table } from './connection.ts';
import type { Group } from './group.ts';

interface Settle<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** Rows of a batch that is worth a flush of its own. */
const largeBatch = 32;

const rowsOf = (statements: readonly Statement[]) =>
  statements.reduce((count, { rows }) => count + rows.length, 0);

/** Statements that were all given at once. */
export class BatchEntry implements Entry {
  readonly isLarge: boolean;
  readonly #statements: readonly Statement[];
  readonly #settle: Settle<void>;
  #result: Promise<Table | undefined> | undefined;

  constructor(statements: readonly Statement[], settle: Settle<void>) {
    this.#statements = statements;
    this.isLarge = rowsOf(statements) >= largeBatch;
    this.#settle = settle;
  }

  async run(group: Group): Promise<void> {
    this.#result = group.hold({ kind: 'batch', statements: this.#statements });
    this.#result.catch(() => {});
  }

  committed(): void {
    this.#result?.then(() => this.#settle.resolve(), this.#settle.reject);
  }

  failed(error: unknown): void {
    this.#settle.reject(error);
  }
}

/** A transaction whose statements come one by one. */
export class TransactionEntry<T> implements Entry {
  readonly isLarge = false;
  readonly #begin: (group: Group) => { readonly scope: TransactionWork; work(): Promise<T> };
  readonly #settle: Settle<T>;
  #value: T | undefined;

  constructor(begin: (group: Group) => { scope: TransactionWork; work(): Promise<T> }, settle: Settle<T>) {
    this.#begin = begin;
    this.#settle = settle;
  }

  async run(group: Group): Promise<void> {
    group.control('savepoint');
    const { scope, work } = this.#begin(group);
    try {
      this.#value = await scope.run(work);
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
