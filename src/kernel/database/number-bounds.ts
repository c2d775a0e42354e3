import type { Clock } from '../clock.ts';
import type { Logger } from '../observability/logger.ts';
import { DatabaseClosed } from './errors.ts';
import type { Statement } from './statement.ts';

/**
 * The bound of one kind of assigned numbers. Its row in `number_bounds` is at or above every such number on disk, so that
 * no number is assigned twice after a crash.
 */
export interface NumberBound {
  readonly name: string;
  /** The value to which the next write must raise the row; `undefined` while enough numbers are left below the bound. */
  readonly due: number | undefined;
  /** Called when a write that has raised the row to `value` is on disk. */
  raised(value: number): void;
}

/** The bounds that a write must raise. */
export interface DueBounds {
  readonly statement: Statement;
  /** To be called when the write is on disk. */
  onDisk(): void;
}

export interface NumberBoundsDeps {
  /** Writes a batch, which raises the bounds that are due, as every write does. */
  readonly batch: (statements: readonly Statement[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const raise =
  'insert into number_bounds (name, bound) values (?, ?)' +
  ' on conflict (name) do update set bound = excluded.bound where number_bounds.bound < excluded.bound';

/** Milliseconds until the next attempt to raise the bounds, after the database has failed to do it. */
const retryDelay = 1_000;

/**
 * The bounds of the numbers that this process assigns in memory. Every write raises in its own transaction the bounds
 * that are due: numbers may be assigned without waiting for the disk, also inside a transaction, and reach the disk
 * only together with a bound above them.
 */
export class NumberBounds {
  readonly #deps: NumberBoundsDeps;
  readonly #bounds: NumberBound[] = [];
  #isRaising = false;

  constructor(deps: NumberBoundsDeps) {
    this.#deps = deps;
  }

  add(bound: NumberBound): void {
    this.#bounds.push(bound);
  }

  /** Returns the bounds that the next write must raise above the numbers assigned so far; `undefined` almost always. */
  due(): DueBounds | undefined {
    const due: { bound: NumberBound; value: number }[] = [];
    for (const bound of this.#bounds) {
      const value = bound.due;
      if (value !== undefined) due.push({ bound, value });
    }
    if (due.length === 0) return undefined;
    return {
      statement: { sql: raise, rows: due.map(({ bound, value }) => [bound.name, value]) },
      onDisk: () => {
        for (const { bound, value } of due) bound.raised(value);
      },
    };
  }

  /**
   * Raises the bounds that are due in the background, so that they are raised even when nothing else is written. Logs a
   * failure and tries again after a second, unless the database is closed.
   */
  raiseInBackground(): void {
    if (this.#isRaising || !this.due()) return;
    this.#isRaising = true;
    // An empty batch is enough: every write raises the bounds that are due.
    this.#deps.batch([]).then(
      () => this.#raiseAgain(),
      (error: unknown) => {
        if (error instanceof DatabaseClosed) return;
        this.#deps.log.error({ err: error }, 'The bounds of assigned numbers could not be raised');
        this.#deps.clock.setTimer(retryDelay, () => this.#raiseAgain());
      },
    );
  }

  #raiseAgain(): void {
    this.#isRaising = false;
    this.raiseInBackground();
  }
}
