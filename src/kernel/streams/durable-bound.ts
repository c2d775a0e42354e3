import type { Database } from '../database/database.ts';
import { raiseBound } from './store.ts';

/**
 * A bound on disk above all numbers that were assigned. A process begins above the bound of the last run, so that no
 * number is assigned twice, not even after a crash. One process at a time writes the database (decision 0131): all
 * numbers up to the raised bound are its own.
 */
export class DurableBound {
  readonly #database: Database;
  readonly #name: string;
  readonly #step: number;
  #value: number;
  #extension: Promise<void> | undefined;

  private constructor(database: Database, name: string, step: number, value: number) {
    this.#database = database;
    this.#name = name;
    this.#step = step;
    this.#value = value;
  }

  /**
   * @param step numbers by which the bound is raised at a time
   * @returns the bound, already raised, and the last number that an earlier run may have used.
   */
  static async open(database: Database, name: string, step: number): Promise<[DurableBound, last: number]> {
    const value = await raiseBound(database, name, step);
    return [new DurableBound(database, name, step, value), value - step];
  }

  /** Whether `number` may be used. Raises the bound in the background long before it is reached. */
  covers(number: number): boolean {
    if (number > this.#value - this.#step / 2) void this.#extend().catch(() => undefined);
    return number <= this.#value;
  }

  /** Raises the bound, once at a time; after a failure, the next call of `covers` tries again. */
  #extend(): Promise<void> {
    this.#extension ??= raiseBound(this.#database, this.#name, this.#step)
      .then((value) => {
        this.#value = value;
      })
      .finally(() => {
        this.#extension = undefined;
      });
    return this.#extension;
  }
}
