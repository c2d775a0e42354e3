import type { Database } from '../database/database.ts';
import { DurableBound } from './durable-bound.ts';

/** Number of ids by which the bound on disk is raised the first time (`DurableBound`). */
const defaultStep = 50_000;

/**
 * Assigns unique ids in memory, without a query and in any number. Callers must use the ids only in writes to the
 * database of the sequence, because these writes raise the bound on disk above the ids.
 */
export class Sequence {
  readonly #bound: DurableBound;
  #last: number;

  private constructor(bound: DurableBound, last: number) {
    this.#bound = bound;
    this.#last = last;
  }

  /**
   * @param name key of the bound on disk; must never change
   * @param step number of ids by which the bound is raised the first time
   */
  static async open(database: Database, name: string, step = defaultStep): Promise<Sequence> {
    return new Sequence(...(await DurableBound.open(database, name, step)));
  }

  /** Returns the next id. */
  next(): number {
    return this.take(1);
  }

  /** Returns the first of `count` ids in a row. */
  take(count: number): number {
    const first = this.#last + 1;
    this.#last += count;
    this.#bound.assign(this.#last);
    return first;
  }
}
