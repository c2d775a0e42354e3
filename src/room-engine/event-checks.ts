import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import type { EventToSend } from './event-to-send.ts';
import type { RoomReader } from './room-reader.ts';

/** The context of an event for a check. */
export interface EventCheckContext {
  /** Absent while a room is created whose id is the hash of its create event. */
  readonly roomId: string | undefined;
  /** All first events of a new room, including the checked event; absent for rooms that exist. */
  readonly newRoom?: readonly EventToSend[];
}

/** A content that replaces the content of the event that the user sends. */
export interface ChangedContent {
  readonly content: JsonObject;
}

/** Fields of the content that a check may not change, by event type: the server has already acted on them. */
const fixedFields: Readonly<Record<string, readonly string[]>> = {
  'm.room.create': ['room_version', 'creator', 'additional_creators', 'predecessor'],
  'm.room.member': ['membership', 'third_party_invite', 'join_authorised_via_users_server'],
  'm.room.redaction': ['redacts'],
};

/**
 * Returns whether a check may replace the content of an event by `changed`: the fields in `fixedFields` must be the
 * same.
 */
export function mayChange({ type, content }: EventToSend, changed: JsonObject): boolean {
  const fixed = Object.hasOwn(fixedFields, type) ? fixedFields[type] : undefined;
  return fixed?.every((name) => isDeepStrictEqual(content[name], changed[name])) ?? true;
}

/** Decides whether events of local users are sent, for instance a spam checker or a check of third-party rules. */
export interface EventCheck {
  /**
   * Checks an event that the authorization rules allow. Other events may be sent in the meantime; the rules are
   * applied again afterwards. The check limits its own running time, because the client waits.
   * @returns an error for the client, to reject the event; another content, to send the event with it (only if
   * `mayChange` allows it); undefined, to send the event as it is
   */
  check(draft: EventToSend, context: EventCheckContext): Promise<MatrixError | ChangedContent | undefined>;
}

/** Opens the checks of one slice. @param engine for checks that read the state of the room */
export type OpenEventChecks = (engine: RoomReader) => readonly EventCheck[];

/**
 * The checks that every event of a local user passes before it is staged: messages, redactions, state, memberships, the
 * events of a new room, and joins, knocks and invites through another server.
 */
export class EventChecks {
  readonly #checks: readonly EventCheck[];

  /** @param checks in the order in which they run */
  constructor(checks: readonly EventCheck[]) {
    this.#checks = checks;
  }

  /**
   * Whether there are no checks. Callers test this before they call `pass`, so that without checks nothing is awaited.
   */
  get isEmpty(): boolean {
    return this.#checks.length === 0;
  }

  /**
   * Runs the checks of an event one after the other.
   * @returns the event to send: the draft, or a copy with the content that a check has changed
   * @throws MatrixError of the first check that rejects the event
   */
  async pass(draft: EventToSend, context: EventCheckContext): Promise<EventToSend> {
    let checked = draft;
    for (const check of this.#checks) {
      const result = await check.check(checked, context);
      if (result instanceof MatrixError) throw result;
      if (result !== undefined) checked = { ...checked, content: result.content };
    }
    return checked;
  }

  /**
   * Runs the checks of the events of a new room, one event after the other.
   * @param roomId absent for a room whose id is the hash of its create event
   * @returns the events to send
   * @throws MatrixError of the first check that rejects an event
   */
  async passAll(
    newRoom: readonly [EventToSend, ...EventToSend[]],
    roomId: string | undefined,
  ): Promise<[EventToSend, ...EventToSend[]]> {
    const [createEvent, ...otherDrafts] = newRoom;
    const checked: [EventToSend, ...EventToSend[]] = [await this.pass(createEvent, { roomId, newRoom })];
    for (const draft of otherDrafts) checked.push(await this.pass(draft, { roomId, newRoom }));
    return checked;
  }
}
