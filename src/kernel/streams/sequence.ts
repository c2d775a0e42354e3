import type { Database } from '../database/database.ts';
import { DatabaseOverloaded } from '../database/errors.ts';
import { DurableBound } from './durable-bound.ts';

/** Ids by which the bound on disk is raised at a time; a crash leaves at most as many unused. */
const defaultStep = 50_000;

/** Unique ids, assigned in memory without a query. */
export class Sequence {
  readonly #bound: DurableBound;
  #last: number;

  private constructor(bound: DurableBound, last: number) {
    this.#bound = bound;
    this.#last = last;
  }

  /**
   * @param name key of the bound on disk; must never change
   * @param step ids by which the bound is raised at a time; one transaction may take half of them without waiting
   */
  static async open(database: Database, name: string, step = defaultStep): Promise<Sequence> {
    return new Sequence(...(await DurableBound.open(database, name, step)));
  }

  /**
   * Waits until `next` can return `count` more ids, with thousands to spare for others.
   * @returns undefined when it can already, so that nothing needs to be awaited
   */
  untilAvailable(count = 1): Promise<void> | undefined {
    return this.#bound.untilCovered(this.#last + count);
  }

  /** Returns the first of `count` ids in a row, when all of them may be used. */
  async take(count: number): Promise<number> {
    for (let wait = this.untilAvailable(count); wait; wait = this.untilAvailable(count)) await wait;
    const first = this.#last + 1;
    this.#last += count;
    return first;
  }

  /** Returns the next id. @throws DatabaseOverloaded when the bound on disk could not be raised in time */
  next(): number {
    const id = this.#last + 1;
    if (!this.#bound.covers(id))
      throw new DatabaseOverloaded('ids ran out before their bound could be extended');
    this.#last = id;
    return id;
  }
}
