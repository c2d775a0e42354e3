/** An attempt that has begun: the number of the period in which it began. */
export type Attempt = number;

/**
 * Tracks attempts to write events. Attempts overlap in time; data can be removed once all attempts that may use it have
 * ended. Time is divided into periods; each attempt belongs to the period in which it began.
 */
export class Attempts {
  #period = 0;
  /** Number of attempts that have not ended, by period, the oldest first. */
  readonly #active = new Map<number, number>();

  /** The current period: new attempts begin in it. */
  get period(): number {
    return this.#period;
  }

  /** Whether no attempt is running. */
  get isIdle(): boolean {
    return this.#active.size === 0;
  }

  /** The period of the oldest attempt that has not ended; without such an attempt, the next period. */
  get oldest(): number {
    for (const period of this.#active.keys()) return period;
    return this.#period + 1;
  }

  /** Begins an attempt in the current period. */
  begin(): Attempt {
    this.#active.set(this.#period, (this.#active.get(this.#period) ?? 0) + 1);
    return this.#period;
  }

  /** Ends an attempt; call it once for each attempt. */
  end(attempt: Attempt): void {
    const remaining = (this.#active.get(attempt) ?? 1) - 1;
    if (remaining > 0) this.#active.set(attempt, remaining);
    else this.#active.delete(attempt);
  }

  /** Begins the next period. */
  nextPeriod(): void {
    this.#period++;
  }
}
