import type { Database } from '../database/database.ts';
import type { NumberBound } from '../database/number-bounds.ts';
import { raiseBound } from './store.ts';

/** Maximum step by which the bound is raised at a time. A crash leaves a few steps of numbers unused at most. */
const maxStep = 1_000_000;

/**
 * A bound on disk at or above all numbers that are on disk or were seen outside of this process. A process begins above
 * the bound of the last run, so that no number is assigned twice, not even after a crash. One process at a time writes
 * the database (decision 0131): all numbers up to the raised bound are its own.
 *
 * The bound is raised in the background long before it is reached. When that raise is late, numbers above the bound are
 * assigned nevertheless, and the transaction that writes them raises it (`NumberBounds`).
 */
export class DurableBound implements NumberBound {
  readonly name: string;
  readonly #database: Database;
  #step: number;
  #value: number;
  /** The highest number that is assigned. */
  #assigned: number;
  #isRaising = false;
  #onRaised: ((value: number) => void) | undefined;
  #onFailed: ((error: unknown) => void) | undefined;

  private constructor(database: Database, name: string, step: number, value: number) {
    this.#database = database;
    this.name = name;
    this.#step = step;
    this.#value = value;
    this.#assigned = value - step;
  }

  /**
   * @param step by how much the bound is raised the first time
   * @returns the bound, already raised, and the last number that an earlier run may have used.
   */
  static async open(database: Database, name: string, step: number): Promise<[DurableBound, last: number]> {
    const value = await raiseBound(database, name, step);
    const bound = new DurableBound(database, name, step, value);
    database.numberBounds.add(bound);
    return [bound, value - step];
  }

  /** The bound on disk, as far as this process knows. */
  get value(): number {
    return this.#value;
  }

  get due(): number | undefined {
    return this.#assigned > this.#value ? this.#assigned + this.#step : undefined;
  }

  /**
   * @param onRaised called when the bound was raised
   * @param onFailed called when the bound could not be raised in the background; `raiseIfLow` tries again
   */
  watch(onRaised: (value: number) => void, onFailed: (error: unknown) => void): void {
    this.#onRaised = onRaised;
    this.#onFailed = onFailed;
  }

  /** Notes that all numbers up to `number` are assigned. */
  assign(number: number): void {
    this.#assigned = number;
    this.raiseIfLow();
  }

  /** Doubles the step when numbers are used up faster than the database raises the bound. */
  raised(value: number): void {
    if (value <= this.#value) return;
    if (this.#assigned > this.#value - this.#step / 4) this.#step = Math.min(this.#step * 2, maxStep);
    this.#value = value;
    this.#onRaised?.(value);
  }

  /** Raises the bound in the background when less than half a step is left, once at a time. */
  raiseIfLow(): void {
    if (this.#isRaising || this.#assigned <= this.#value - this.#step / 2) return;
    this.#isRaising = true;
    const increase = Math.max(this.#step, this.#assigned - this.#value + this.#step);
    raiseBound(this.#database, this.name, increase).then(
      (value) => {
        this.#isRaising = false;
        this.raised(value);
        this.raiseIfLow();
      },
      (error: unknown) => {
        this.#isRaising = false;
        this.#onFailed?.(error);
      },
    );
  }
}
