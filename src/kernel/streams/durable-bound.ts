import type { Database } from '../database/database.ts';
import { raiseBound } from './store.ts';

/** Maximum step by which the bound is raised at a time. A crash leaves at most this many numbers unused. */
const maxStep = 1_000_000;

/**
 * A bound on disk above all numbers that were assigned. A process begins above the bound of the last run, so that no
 * number is assigned twice, not even after a crash. One process at a time writes the database (decision 0131): all
 * numbers up to the raised bound are its own.
 */
export class DurableBound {
  readonly #database: Database;
  readonly #name: string;
  #step: number;
  #value: number;
  /** The highest number that a caller asked for. */
  #wanted = 0;
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
    if (number > this.#value - this.#step / 2) {
      this.#wanted = Math.max(this.#wanted, number);
      void this.#extend().catch(() => undefined);
    }
    return number <= this.#value;
  }

  /**
   * Waits until `number` may be used, with a quarter of a step to spare for numbers that are used without waiting.
   * @returns `undefined` when the number may be used already, so that nothing needs to be awaited
   * @throws the error of the database that could not raise the bound
   */
  untilCovered(number: number): Promise<void> | undefined {
    return this.covers(number) && number <= this.#value - this.#step / 4 ? undefined : this.#reach(number);
  }

  async #reach(number: number): Promise<void> {
    do {
      this.#wanted = Math.max(this.#wanted, number);
      await this.#extend();
    } while (number > this.#value - this.#step / 4);
  }

  /**
   * Raises the bound, once at a time; after a failure, the next call tries again. Numbers that are used up faster than
   * the database raises their bound double the step.
   */
  #extend(): Promise<void> {
    const by = Math.max(this.#step, this.#wanted - this.#value + this.#step);
    const before = this.#value;
    this.#extension ??= raiseBound(this.#database, this.#name, by)
      .then((value) => {
        this.#value = value;
        if (this.#wanted > before - this.#step / 4) this.#step = Math.min(this.#step * 2, maxStep);
      })
      .finally(() => {
        this.#extension = undefined;
      });
    return this.#extension;
  }
}
