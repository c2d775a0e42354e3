import type { Database } from '../database/database.ts';
import { DurableBound } from './durable-bound.ts';

/** Promised to the disk at a time; also what a crash may leave unused. */
const step = 10_000;

/** Ids that are given out in memory, without asking the database, and never twice. */
export class Sequence {
  readonly #bound: DurableBound;
  #last: number;

  private constructor(bound: DurableBound, last: number) {
    this.#bound = bound;
    this.#last = last;
  }

  /** @param name names the sequence on disk; never change it. */
  static async open(database: Database, name: string): Promise<Sequence> {
    return new Sequence(...(await DurableBound.open(database, name, step)));
  }

  /** One more than the last; throws Error when the disk could not keep up. */
  next(): number {
    const id = this.#last + 1;
    if (!this.#bound.covers(id)) throw new Error('ids ran out before their bound could be extended');
    this.#last = id;
    return id;
  }
}
