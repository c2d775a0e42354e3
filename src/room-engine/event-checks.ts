import type { MatrixError } from '../protocol/index.ts';
import type { RoomReader } from './room-reader.ts';
import type { EventToSend } from './timeline/event-to-send.ts';

/** What a check receives with the event. */
export interface EventCheckContext {
  /** Absent while a room is created whose id is the hash of its create event. */
  readonly roomId: string | undefined;
  /** All events with which a new room begins, the checked one among them; absent for rooms that exist. */
  readonly newRoom?: readonly EventToSend[];
}

/** Decides whether events of local users are sent: a spam checker, rules of a third party. */
export interface EventCheck {
  /**
   * Checks an event that the authorization rules allow. Other events may be sent in the meantime; the rules are
   * applied again afterwards. The check bounds its own time: the client waits.
   * @returns the error for the client, which rejects the event; undefined allows it
   */
  check(draft: EventToSend, context: EventCheckContext): Promise<MatrixError | undefined>;
}

/** Opens the checks of one slice. @param engine for checks that read the state of the room */
export type OpenEventChecks = (engine: RoomReader) => readonly EventCheck[];

/**
 * The checks that every event of a local user passes before it is staged: messages, redactions, state, memberships, the
 * events of a new room, and joins, knocks and invites in which another server takes part.
 */
export class EventChecks {
  readonly #checks: readonly EventCheck[];

  /** @param checks in the order in which they are asked */
  constructor(checks: readonly EventCheck[]) {
    this.#checks = checks;
  }

  /** Callers ask first, so that without checks nothing is awaited. */
  get isEmpty(): boolean {
    return this.#checks.length === 0;
  }

  /**
   * Asks the checks one after the other.
   * @throws MatrixError of the first one that rejects the event
   */
  async pass(draft: EventToSend, context: EventCheckContext): Promise<void> {
    for (const check of this.#checks) {
      const rejection = await check.check(draft, context);
      if (rejection !== undefined) throw rejection;
    }
  }
}
