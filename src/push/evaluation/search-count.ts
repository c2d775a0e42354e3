/**
 * Maximum search steps of the push rules of a user in the evaluation of many events: about 150 ms. A user with a
 * hundred keywords and a thousand unread messages needs a tenth of these steps.
 */
export const maxSearchSteps = 8_388_608;

/** After this number of search steps (a few milliseconds), other requests are processed. */
const stepsPerTurn = 262_144;

/** Counts the search steps (see `SEARCH_BUDGET`) of the push rules of a user in the evaluation of many events. */
export class SearchCount {
  #total = 0;
  #ofTurn = 0;

  /** Adds the search steps of one event. */
  add(steps: number): void {
    this.#total += steps;
    this.#ofTurn += steps;
  }

  /** Whether `maxSearchSteps` are reached, so that no more events are to be evaluated. */
  get isUsedUp(): boolean {
    return this.#total >= maxSearchSteps;
  }

  /** Waits for a turn of the event loop after many steps. `undefined`: continue at once. */
  pauseIfDue(): Promise<void> | undefined {
    if (this.#ofTurn < stepsPerTurn) return undefined;
    this.#ofTurn = 0;
    return new Promise((resolve) => setImmediate(resolve));
  }
}
