import type { IdleGuard } from './idle-guard.ts';
import type { Execute, Outcome } from './queries.ts';

/**
 * The part of a transaction that is the same on every database: runs the caller's work on a connection that
 * belongs to the transaction until it ends, and remembers the first failed statement.
 */
export class TransactionWork {
  readonly #execute: Execute;
  readonly #guard: IdleGuard;
  readonly #running = new Set<Promise<unknown>>();
  #over = false;
  #failure: Error | undefined;

  constructor(execute: Execute, guard: IdleGuard) {
    this.#execute = execute;
    this.#guard = guard;
  }

  /** The error of the first failed statement. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Runs statements of the writer that the work receives. */
  readonly execute: Execute = async (sql, parameters) => {
    if (this.#over) throw new Error('the transaction has ended: its writer must not be used after that');
    if (this.#failure) throw this.#failure;
    const statement = this.#guard.during(() => this.#run(sql, parameters));
    this.#running.add(statement);
    return statement.finally(() => this.#running.delete(statement));
  };

  /**
   * Resolves when `work` and all its statements have succeeded, including statements that it does not await.
   */
  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      const value = await this.#guard.watch(work());
      await Promise.all(this.#running);
      if (this.#failure) throw this.#failure;
      return value;
    } finally {
      this.#over = true;
      await Promise.allSettled(this.#running);
    }
  }

  async #run(sql: string, parameters: readonly unknown[]): Promise<Outcome> {
    try {
      return await this.#execute(sql, parameters);
    } catch (error) {
      this.#failure ??= error as Error;
      throw error;
    }
  }
}
