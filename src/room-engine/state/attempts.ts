/** An attempt that has begun: the number of the period in which it began. */
export type Attempt = number;

/**
 * Tracks attempts to write events, which overlap in time, so that data can be removed once all attempts that may use it
 * have ended. Time is divided into periods; each attempt belongs to the period in which it began.
 */
export class Attempts {
  #period = 0;
  /** Attempts that have not ended, by period, the oldest first. */
  readonly #active = new Map<number, number>();

  /** The period to which attempts that begin at this moment belong. */
  get period(): number {
    return this.#period;
  }

  get isIdle(): boolean {
    return this.#active.size === 0;
  }

  /** The period of the oldest attempt that has not ended; without such an attempt, the next period. */
  get oldest(): number {
    for (const period of this.#active.keys()) return period;
    return this.#period + 1;
  }

  begin(): Attempt {
    this.#active.set(this.#period, (this.#active.get(this.#period) ?? 0) + 1);
    return this.#period;
  }

  end(attempt: Attempt): void {
    const left = (this.#active.get(attempt) ?? 1) - 1;
    if (left > 0) this.#active.set(attempt, left);
    else this.#active.delete(attempt);
  }

  nextPeriod(): void {
    this.#period++;
  }
}
