import type { Database } from '../database/database.ts';
import type { NumberBound, NumberBounds } from '../database/number-bounds.ts';
import { raiseBound } from './store.ts';

/** Maximum step by which the bound is raised at a time. A crash leaves at most a few steps of numbers unused. */
const maxStep = 1_000_000;

/**
 * A bound on disk at or above all numbers that are on disk or were seen outside of this process. A process begins above
 * the bound of the last run, so that no number is assigned twice, not even after a crash. One process at a time writes
 * the database (decision 0131): all numbers up to the raised bound are its own.
 *
 * The bound is due when less than half a step is left: the next write raises it, or a write in the background
 * (`NumberBounds`). When both are late, numbers above the bound are assigned nevertheless, because the transaction
 * that writes them raises the bound.
 */
export class DurableBound implements NumberBound {
  readonly name: string;
  readonly #bounds: NumberBounds;
  #step: number;
  #value: number;
  /** The highest number that is assigned. */
  #assigned: number;
  #onRaised: ((value: number) => void) | undefined;

  private constructor(bounds: NumberBounds, name: string, step: number, value: number) {
    this.#bounds = bounds;
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
    const bound = new DurableBound(database.numberBounds, name, step, value);
    database.numberBounds.add(bound);
    return [bound, value - step];
  }

  /** The bound on disk, as far as this process knows. */
  get value(): number {
    return this.#value;
  }

  get due(): number | undefined {
    const isNearlyReached = this.#assigned > this.#value - this.#step / 2;
    return isNearlyReached ? Math.max(this.#assigned, this.#value) + this.#step : undefined;
  }

  /** Calls `listener` whenever the bound was raised. */
  onRaised(listener: (value: number) => void): void {
    this.#onRaised = listener;
  }

  /** Records in memory that all numbers up to `number` are assigned. */
  assign(number: number): void {
    this.#assigned = number;
    if (this.due !== undefined) this.#bounds.raiseInBackground();
  }

  /**
   * Records that the bound on disk was raised to `value`. Doubles the step when numbers are used up faster than the
   * database raises the bound.
   */
  raised(value: number): void {
    if (value <= this.#value) return;
    if (this.#assigned > this.#value - this.#step / 4) this.#step = Math.min(this.#step * 2, maxStep);
    this.#value = value;
    this.#onRaised?.(value);
  }
}
