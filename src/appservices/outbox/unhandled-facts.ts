import type { FactBuffer } from '../../kernel/streams/index.ts';
import type { Fact, MembershipFact } from './fact.ts';

/**
 * The facts (changes that services may have to receive) that `FanOut` has still to handle: the current batch, later facts
 * in the database, and the facts in the buffer.
 */
export class UnhandledFacts {
  readonly #buffer: Pick<FactBuffer<Fact>, 'untakenFacts'>;
  /** The batch that is being handled. */
  #current: readonly Fact[] = [];
  /** Index of the fact of `#current` that is being handled. */
  #index = 0;
  /** Facts that are still to be read from the database. */
  #stored: readonly MembershipFact[] = [];

  constructor(buffer: Pick<FactBuffer<Fact>, 'untakenFacts'>) {
    this.#buffer = buffer;
  }

  /** Supplies the changes of memberships in the facts that `FanOut` has still to read from the database. */
  setStored(facts: readonly MembershipFact[]): void {
    this.#stored = facts;
  }

  /**
   * Yields facts one by one. When the caller fails to handle a fact, this fact and those after it stay unhandled.
   * @param upTo position of the last of these facts
   */
  *handle(facts: readonly Fact[], upTo: number): Generator<Fact> {
    this.#stored = this.#stored.filter(({ position }) => position > upTo);
    this.#current = facts;
    for (const [index, fact] of facts.entries()) {
      this.#index = index;
      yield fact;
    }
    this.#current = [];
  }

  /**
   * Marks the changes of memberships in the current fact as handled. Called when the services that `RoomInterest` caches
   * for the room include these changes.
   */
  membershipsApplied(): void {
    this.#index++;
  }

  /**
   * Returns the memberships in a room before the unhandled facts, for the users with a membership that these facts
   * change.
   * @returns user id to whether the user was joined
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
