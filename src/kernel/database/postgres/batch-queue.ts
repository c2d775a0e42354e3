import { DatabaseClosed, DatabaseOverloaded } from '../errors.ts';
import type { Statement } from '../statement.ts';
import { Disconnected } from './errors.ts';

interface Waiting {
  readonly statements: readonly Statement[];
  resolve(): void;
  reject(error: unknown): void;
}

/** Maximum number of batches that share a transaction. */
const maxTogether = 500;

/** Maximum number of batches that wait; further batches are rejected. */
const maxWaiting = 100_000;

/**
 * Batches that are ready at the same time share a transaction. When the transaction fails, each batch is retried
 * separately, so that only the faulty batch fails. After a broken connection no batch is retried.
 */
export class BatchQueue {
  readonly #commit: (statements: readonly Statement[]) => Promise<void>;
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;
  #closed = false;

  constructor(commit: (statements: readonly Statement[]) => Promise<void>) {
    this.#commit = commit;
  }

  /**
   * Resolves when the statements are on disk.
   * @throws DatabaseClosed, DatabaseOverloaded, and errors of the statements
   */
  add(statements: readonly Statement[]): Promise<void> {
    if (this.#closed) return Promise.reject(new DatabaseClosed('the database is closed'));
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(new DatabaseOverloaded(`${maxWaiting} batches are waiting`));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ statements, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Rejects further batches; resolves when all added ones have settled. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) await this.#commitTogether(this.#waiting.splice(0, maxTogether));
    this.#working = undefined;
  }

  async #commitTogether(batches: readonly Waiting[]): Promise<void> {
    try {
      await this.#commit(batches.flatMap(({ statements }) => statements));
      for (const { resolve } of batches) resolve();
    } catch (error) {
      // After a broken connection it is unknown whether the commit took effect: a retry might apply it twice.
      const canRetry = batches.length > 1 && !(error instanceof Disconnected);
      if (canRetry) for (const batch of batches) await this.#commitTogether([batch]);
      else for (const { reject } of batches) reject(error);
    }
  }
}
