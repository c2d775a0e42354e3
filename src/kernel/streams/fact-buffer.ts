import type { StreamReader } from './stream-reader.ts';

/** Maximum number of facts in a buffer. */
const defaultMaxFacts = 10_000;

/**
 * Holds facts in the order of their positions until a follower takes them. The follower reads the database only for
 * facts from before the start of this process, after a failure, and when the buffer was full.
 */
export class FactBuffer<F extends { readonly position: number }> {
  readonly #maxFacts: number;
  #facts: F[] = [];
  /** The position after which the buffer is complete. */
  #since: number;

  /**
   * @param maxFacts maximum number of facts; when there are more, all are dropped and have to be read from the database
   */
  constructor(streams: Pick<StreamReader, 'current'>, maxFacts = defaultMaxFacts) {
    this.#since = streams.current;
    this.#maxFacts = maxFacts;
  }

  /** Adds a fact, whose position must not be lower than the positions of the facts before. */
  add(fact: F): void {
    this.#facts.push(fact);
    if (this.#facts.length <= this.#maxFacts) return;
    this.#facts = [];
    this.#since = fact.position;
  }

  /** Removes and returns the facts in `(after, upTo]`; `undefined` when some of them are not in memory. */
  take(after: number, upTo: number): readonly F[] | undefined {
    const isComplete = after >= this.#since;
    const end = this.#facts.findIndex(({ position }) => position > upTo);
    const taken = this.#facts.splice(0, end === -1 ? this.#facts.length : end);
    // When the caller fails to handle them, its next attempt reads them from the database.
    this.#since = Math.max(this.#since, upTo);
    return isComplete ? taken.filter(({ position }) => position > after) : undefined;
  }

  /** The facts that were not taken yet. */
  get untakenFacts(): readonly F[] {
    return this.#facts;
  }
}
