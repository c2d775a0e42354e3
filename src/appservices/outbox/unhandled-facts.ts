import type { Fact, MembershipFact } from './fact.ts';
import type { FactBuffer } from './fact-buffer.ts';

/** The facts that are not in the outbox yet: the current ones, later ones in the database, and those in the buffer. */
export class UnhandledFacts {
  readonly #buffer: Pick<FactBuffer, 'rest'>;
  #current: readonly Fact[] = [];
  /** Index of the fact of `#current` that is being handled. */
  #index = 0;
  #stored: readonly MembershipFact[] = [];

  constructor(buffer: Pick<FactBuffer, 'rest'>) {
    this.#buffer = buffer;
  }

  /** Sets the changes of memberships in facts that will be read from the database. */
  setStored(facts: readonly MembershipFact[]): void {
    this.#stored = facts;
  }

  /** Yields facts one by one; when one cannot be handled, it and those after it stay unhandled. */
  *handle(facts: readonly Fact[], upTo: number): Generator<Fact> {
    this.#stored = this.#stored.filter(({ position }) => position > upTo);
    this.#current = facts;
    for (const [index, fact] of facts.entries()) {
      this.#index = index;
      yield fact;
    }
    this.#current = [];
  }

  /** The changes of memberships by the current fact have taken effect on the cached services of rooms. */
  membershipsApplied(): void {
    this.#index++;
  }

  /**
   * Returns, for the users of a room whose membership is changed by unhandled facts, whether they were joined before these
   * facts.
   */
  membersBefore(roomId: string): ReadonlyMap<string, boolean> {
    const before = new Map<string, boolean>();
    const decided = new Set<string>();
    for (const fact of [...this.#current.slice(this.#index), ...this.#stored, ...this.#buffer.rest]) {
      if (fact.kind !== 'event' && fact.kind !== 'memberships') continue;
      if ((fact.kind === 'event' ? fact.stored.event.roomId : fact.roomId) !== roomId) continue;
      for (const { userId, wasJoined } of fact.memberships) {
        if (!decided.has(userId) && wasJoined !== undefined) before.set(userId, wasJoined);
        decided.add(userId);
      }
    }
    return before;
  }
}
