import type { RoomEvent } from '../event.ts';
import { foldCase } from '../globs/fold-case.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { type PropertyPath, propertyAt } from './property-path.ts';

/** What of an event the rules can look at. */
export type PushSubject = Pick<
  RoomEvent,
  'eventId' | 'roomId' | 'type' | 'stateKey' | 'sender' | 'content' | 'originServerTs' | 'redacts'
>;

/** What the rules need to know about the room, as of the event. */
export interface PushRoomFacts {
  /** How many users are joined. */
  readonly memberCount: number;
  /** Whether the sender's power level lets them trigger the notification of this key: `PowerLevels.canNotify`. */
  senderMayNotify(key: string): boolean;
  /** The event that the thread of this one begins with; `undefined` when it is in none. */
  readonly threadRoot?: string | undefined;
}

/** One of the members whose rules are evaluated. */
export interface PushMember {
  readonly userId: string;
  /** Their display name in the room. */
  readonly displayName?: string | undefined;
  /** The events with which the threads of the room begin that they follow. */
  readonly followedThreads?: ReadonlySet<string> | undefined;
}

/**
 * How many steps the rules of one member may take to search through one event. One step is one character compared
 * with a symbol of a short pattern or with 32 of a long one, or one element of an array. Patterns beyond it match
 * nothing: it bounds what a user with thousands of hostile rules can cost, at some tens of milliseconds.
 */
export const SEARCH_BUDGET = 4_194_304;

const UNKNOWN = 0;
const MATCHES = 1;
const DIFFERS = 2;

/**
 * An event prepared for the rules of many members: what they look up more than once is worked out once. Short-lived,
 * because it remembers what it worked out.
 */
export class PushEvent {
  readonly sender: string;
  readonly roomId: string;
  readonly stateKey: string | undefined;
  readonly content: JsonObject;
  readonly room: PushRoomFacts;
  readonly #json: JsonObject;
  /** Only of properties that exist, so that its size is bounded by the event's. */
  readonly #folded = new Map<string, string>();
  readonly #verdicts: number[] = [];
  #mentionedUsers: ReadonlySet<JsonValue> | undefined;
  #budget = SEARCH_BUDGET;

  constructor(event: PushSubject, room: PushRoomFacts) {
    this.sender = event.sender;
    this.roomId = event.roomId;
    this.stateKey = event.stateKey;
    this.content = event.content;
    this.room = room;
    this.#json = clientFormat(event);
  }

  /** The value at a path; `undefined` when there is none. */
  property(path: PropertyPath): JsonValue | undefined {
    return propertyAt(this.#json, path);
  }

  /** The case-folded string at a path, undefined when there is none. `key` is the path as it was written. */
  foldedString(key: string, path: PropertyPath): string | undefined {
    const known = this.#folded.get(key);
    if (known !== undefined) return known;
    const value = this.property(path);
    if (typeof value !== 'string') return undefined;
    const folded = foldCase(value);
    this.#folded.set(key, folded);
    return folded;
  }

  /** The elements of `content.m\.mentions.user_ids`. */
  get mentionedUsers(): ReadonlySet<JsonValue> {
    this.#mentionedUsers ??= new Set(arrayAt(this.property(['content', 'm.mentions', 'user_ids'])));
    return this.#mentionedUsers;
  }

  /**
   * The answer to a question that is the same for all members, asked once, with a search budget of its own: what one
   * member has spent must not change the answer for the others. Slots are small numbers.
   */
  sharedResult(slot: number, test: (event: PushEvent) => boolean): boolean {
    const known = this.#verdicts[slot] ?? UNKNOWN;
    if (known !== UNKNOWN) return known === MATCHES;
    const budgetOfMember = this.#budget;
    this.#budget = SEARCH_BUDGET;
    const matches = test(this);
    this.#budget = budgetOfMember;
    this.#verdicts[slot] = matches ? MATCHES : DIFFERS;
    return matches;
  }

  /** Gives the next member a full search budget. */
  resetSearchBudget(): void {
    this.#budget = SEARCH_BUDGET;
  }

  /** Takes steps from the search budget of the member; false when they are not left. */
  spendSearchSteps(steps: number): boolean {
    if (steps > this.#budget) return false;
    this.#budget -= steps;
    return true;
  }
}

const arrayAt = (value: JsonValue | undefined): readonly JsonValue[] => (Array.isArray(value) ? value : []);

/** The event as clients see it. Source: client-server API, "Room event format". */
function clientFormat(event: PushSubject): JsonObject {
  return {
    event_id: event.eventId,
    room_id: event.roomId,
    type: event.type,
    sender: event.sender,
    origin_server_ts: event.originServerTs,
    content: event.content,
    ...(event.stateKey === undefined ? {} : { state_key: event.stateKey }),
    ...(event.redacts === undefined ? {} : { redacts: event.redacts }),
  };
}
