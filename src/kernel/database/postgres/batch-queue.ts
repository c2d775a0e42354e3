import { DatabaseClosed, DatabaseOverloaded } from '../errors.ts';
import type { Statement } from '../statement.ts';
import { Disconnected } from './errors.ts';

interface Waiting {
  readonly statements: readonly Statement[];
  resolve(): void;
  reject(error: unknown): void;
}

const limits = { together: 500, waiting: 100_000 };

/**
 * Batches that are ready at the same time share a transaction. When it fails, each batch is retried
 * separately, so that only the faulty one fails.
 */
export class BatchQueue {
  readonly #commit: (statements: readonly Statement[]) => Promise<void>;
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;
  #closed = false;

  constructor(commit: (statements: readonly Statement[]) => Promise<void>) {
    this.#commit = commit;
  }

  add(statements: readonly Statement[]): Promise<void> {
    if (this.#closed) return Promise.reject(new DatabaseClosed('the database is closed'));
    if (this.#waiting.length >= limits.waiting) {
      return Promise.reject(new DatabaseOverloaded(`${limits.waiting} batches are waiting`));
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
    while (this.#waiting.length > 0) await this.#commitTogether(this.#waiting.splice(0, limits.together));
    this.#working = undefined;
  }

  async #commitTogether(batches: readonly Waiting[]): Promise<void> {
    try {
      await this.#commit(batches.flatMap(({ statements }) => statements));
      for (const { resolve } of batches) resolve();
    } catch (error) {
      // After a broken connection it is unknown whether the commit took effect: a retry might apply it twice.
      const again = batches.length > 1 && !(error instanceof Disconnected);
      if (again) for (const batch of batches) await this.#commitTogether([batch]);
      else for (const { reject } of batches) reject(error);
    }
  }
}
