import type { Database } from '../database/database.ts';
import { extendBound, type PositionTables, readBound } from './store.ts';

/**
 * A promise on disk that no number above it has been given out. Whoever hands out numbers starts above the bound of
 * the last run, so none is given out twice, also not after a crash.
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
   * @param step how many numbers are promised to the disk at a time
   * @returns the bound, already raised, and the last number that an earlier run may have used.
   */
  static async open(database: Database, name: string, step: number): Promise<[DurableBound, last: number]> {
    const last = await readBound(database.reader<PositionTables>(), name);
    const bound = new DurableBound(database, name, step, last);
    await bound.#extend();
    return [bound, last];
  }

  /** Whether `number` may be used. Raises the bound in the background long before it is reached. */
  covers(number: number): boolean {
    if (number > this.#value - this.#step / 2) void this.#extend().catch(() => undefined);
    return number <= this.#value;
  }

  /** One extension at a time; a failed one is tried again by the next question. */
  #extend(): Promise<void> {
    const target = this.#value + this.#step;
    this.#extension ??= extendBound(this.#database, this.#name, target)
      .then(() => {
        this.#value = target;
      })
      .finally(() => {
        this.#extension = undefined;
      });
    return this.#extension;
  }
}
