import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import type { RoomReader } from './room-reader.ts';
import type { EventToSend } from './timeline/event-to-send.ts';

/** The context in which a check sees an event. */
export interface EventCheckContext {
  /** Absent while a room is created in a version in which the room id is the hash of the create event. */
  readonly roomId: string | undefined;
  /** All events with which a new room begins, the checked one among them; absent for rooms that exist. */
  readonly newRoom?: readonly EventToSend[];
}

/** A content that replaces the content of the event that the user sends. */
export interface ChangedContent {
  readonly content: JsonObject;
}

/**
 * Members of the content, by event type, that a check may not change, because the server has already acted on
 * them.
 */
const fixedMembers: Readonly<Record<string, readonly string[]>> = {
  'm.room.create': ['room_version', 'creator', 'additional_creators', 'predecessor'],
  'm.room.member': ['membership', 'third_party_invite', 'join_authorised_via_users_server'],
  'm.room.redaction': ['redacts'],
};

/**
 * Returns whether a check may replace the content of an event by `changed`: the members in `fixedMembers`
 * must be the same.
 */
export function mayChange({ type, content }: EventToSend, changed: JsonObject): boolean {
  const fixed = Object.hasOwn(fixedMembers, type) ? fixedMembers[type] : undefined;
  return fixed?.every((name) => isDeepStrictEqual(content[name], changed[name])) ?? true;
}

/**
 * Decides whether events of local users are sent, for instance a spam checker or a check of third-party
 * rules.
 */
export interface EventCheck {
  /**
   * Checks an event that the authorization rules allow. Other events may be sent in the meantime; the rules are
   * applied again afterwards. The check bounds its own time: the client waits.
   * @returns the error for the client, which rejects the event; the content with which the event is sent instead, only for
   * events that `mayChange` allows; undefined allows it
   */
  check(draft: EventToSend, context: EventCheckContext): Promise<MatrixError | ChangedContent | undefined>;
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

  /**
   * Whether there are no checks. Callers test this before they call `pass`, so that without checks nothing is
   * awaited.
   */
  get isEmpty(): boolean {
    return this.#checks.length === 0;
  }

  /**
   * Asks the checks one after the other.
   * @returns the event to send: the given one, or one with a content that a check has changed
   * @throws MatrixError of the first one that rejects the event
   */
  async pass(draft: EventToSend, context: EventCheckContext): Promise<EventToSend> {
    let checked = draft;
    for (const check of this.#checks) {
      const answer = await check.check(checked, context);
      if (answer instanceof MatrixError) throw answer;
      if (answer !== undefined) checked = { ...checked, content: answer.content };
    }
    return checked;
  }

  /**
   * Asks the checks about the events of a new room, one after the other.
   * @param roomId absent in room versions in which the room id is the hash of the create event
   * @returns the events to send
   * @throws MatrixError of the first check that rejects one
   */
  async passAll(
    newRoom: readonly [EventToSend, ...EventToSend[]],
    roomId: string | undefined,
  ): Promise<[EventToSend, ...EventToSend[]]> {
    const [creation, ...others] = newRoom;
    const checked: [EventToSend, ...EventToSend[]] = [await this.pass(creation, { roomId, newRoom })];
    for (const draft of others) checked.push(await this.pass(draft, { roomId, newRoom }));
    return checked;
  }
}
