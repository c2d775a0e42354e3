import type { Table } from './connection.ts';
import { typedError } from './errors.ts';
import type { Executor, Operation, Result } from './protocol.ts';

interface Pending {
  readonly operation: Operation;
  resolve(table: Table | undefined): void;
  reject(error: Error): void;
}

/**
 * One BEGIN IMMEDIATE ... COMMIT in the writing worker. Operations whose results are not awaited are held back and sent
 * together with the next awaited operation, so that a group of batches costs one message.
 */
export class Group {
  readonly #executor: Executor;
  readonly #controls: Promise<unknown>[] = [];
  #held: Pending[] = [];
  #failure: Error | undefined;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.control('begin');
  }

  /**
   * Adds an operation that controls the SQLite transaction; `undo` rolls back to the savepoint. When it fails, the
   * whole group fails, and `commit` rejects.
   */
  control(kind: 'begin' | 'commit' | 'savepoint' | 'release' | 'undo'): void {
    const done = this.hold({ kind });
    done.catch((error: Error) => {
      this.#failure ??= error;
    });
    this.#controls.push(done);
  }

  /** Holds an operation back until another operation is sent, or the group is committed. */
  hold(operation: Operation): Promise<Table | undefined> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => this.#held.push({ operation, resolve, reject }));
  }

  /** Sends `operation` now, after all held operations. */
  send(operation: Operation): Promise<Table | undefined> {
    const result = this.hold(operation);
    void this.#flush();
    return result;
  }

  /** Resolves once all operations of the group are on disk; rejects when none of them is. */
  async commit(): Promise<void> {
    this.control('commit');
    await this.#flush();
    await Promise.all(this.#controls);
  }

  async #flush(): Promise<void> {
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    try {
      const results = await this.#executor.send(held.map(({ operation }) => operation));
      for (const [index, pending] of held.entries()) settle(pending, results[index]);
    } catch (error) {
      for (const { reject } of held) reject(error as Error);
    }
  }
}

function settle({ resolve, reject }: Pending, result: Result | undefined): void {
  if (result?.error) reject(typedError(result.error));
  else resolve(result?.table);
}
