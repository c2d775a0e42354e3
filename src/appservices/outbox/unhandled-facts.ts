import type { FactBuffer } from '../../kernel/streams/index.ts';
import type { Fact, MembershipFact } from './fact.ts';

/** The facts that are not handled yet: the current batch, later facts in the database, and the facts in the buffer. */
export class UnhandledFacts {
  readonly #buffer: Pick<FactBuffer<Fact>, 'untakenFacts'>;
  #current: readonly Fact[] = [];
  /** Index of the fact of `#current` that is being handled. */
  #index = 0;
  #stored: readonly MembershipFact[] = [];

  constructor(buffer: Pick<FactBuffer<Fact>, 'untakenFacts'>) {
    this.#buffer = buffer;
  }

  /** Sets the changes of memberships by the facts that are still to be read from the database. */
  setStored(facts: readonly MembershipFact[]): void {
    this.#stored = facts;
  }

  /** Yields facts one by one; when a fact cannot be handled, this fact and those after it stay unhandled. */
  *handle(facts: readonly Fact[], upTo: number): Generator<Fact> {
    this.#stored = this.#stored.filter(({ position }) => position > upTo);
    this.#current = facts;
    for (const [index, fact] of facts.entries()) {
      this.#index = index;
      yield fact;
    }
    this.#current = [];
  }

  /** Notes that the cached services of rooms include the changes of memberships by the current fact. */
  membershipsApplied(): void {
    this.#index++;
  }

  /**
   * Returns, for the users of a room whose membership is changed by unhandled facts, whether they were joined before these
   * facts.
   */
  membersBeforeUnhandledFacts(roomId: string): ReadonlyMap<string, boolean> {
    const wasJoinedBefore = new Map<string, boolean>();
    const seenUsers = new Set<string>();
    for (const fact of [...this.#current.slice(this.#index), ...this.#stored, ...this.#buffer.untakenFacts]) {
      if (fact.kind !== 'event' && fact.kind !== 'memberships') continue;
      if ((fact.kind === 'event' ? fact.stored.event.roomId : fact.roomId) !== roomId) continue;
      for (const { userId, wasJoined } of fact.memberships) {
        if (!seenUsers.has(userId) && wasJoined !== undefined) wasJoinedBefore.set(userId, wasJoined);
        seenUsers.add(userId);
      }
    }
    return wasJoinedBefore;
  }
}
