import type { RoomEvent } from '../event.ts';
import { foldCase } from '../globs/fold-case.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { type PropertyPath, propertyAt } from './property-path.ts';

/** The part of an event that push rules can match. */
export type PushSubject = Pick<
  RoomEvent,
  'eventId' | 'roomId' | 'type' | 'stateKey' | 'sender' | 'content' | 'originServerTs' | 'redacts'
>;

/** The facts about the room that push rules need, as of the event. */
export interface PushRoomFacts {
  /** How many users are joined. */
  readonly memberCount: number;
  /** Whether the sender's power level permits the notification of this key: `PowerLevels.canNotify`. */
  senderMayNotify(key: string): boolean;
  /** The root of the event's thread; `undefined` if it is in none. */
  readonly threadRoot?: string | undefined;
}

/** One of the members whose rules are evaluated. */
export interface PushMember {
  readonly userId: string;
  /** The member's display name in the room. */
  readonly displayName?: string | undefined;
  /** The roots of the threads in the room that the member follows. */
  readonly followedThreads?: ReadonlySet<string> | undefined;
}

/**
 * Maximum search steps of one member's rules on one event. One step compares one character with a symbol of a short
 * pattern or with 32 symbols of a long pattern, searches eight characters for a short literal, or checks one element of
 * an array. Patterns beyond the budget match nothing. The budget bounds the cost of a user with thousands of hostile
 * rules to some twenty milliseconds.
 */
export const SEARCH_BUDGET = 1_048_576;

const UNKNOWN = 0;
const MATCHES = 1;
const DIFFERS = 2;

/**
 * An event prepared for evaluating the rules of many members: caches values that several rules look up.
 * Short-lived, because of that cache.
 */
export class PushEvent {
  readonly sender: string;
  readonly roomId: string;
  readonly stateKey: string | undefined;
  readonly content: JsonObject;
  readonly room: PushRoomFacts;
  readonly #json: JsonObject;
  /** Holds only properties that exist, so that the size of the event bounds the size of the map. */
  readonly #folded = new Map<string, string>();
  /** The shared results by slot: `UNKNOWN`, `MATCHES` or `DIFFERS`. */
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

  /** Returns the value at a path; `undefined` if there is none. */
  property(path: PropertyPath): JsonValue | undefined {
    return propertyAt(this.#json, path);
  }

  /**
   * Returns the case-folded string at a path; `undefined` if there is none. `key` is the path as written in
   * the rule.
   */
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
    this.#mentionedUsers ??= new Set(arrayOrEmpty(this.property(['content', 'm.mentions', 'user_ids'])));
    return this.#mentionedUsers;
  }

  /**
   * Evaluates a test only once, because its result is the same for all members. The test has a search budget of its
   * own, so that what one member has spent does not change the result for others. `slot` is a small number that
   * identifies the test.
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

  /** Resets the search budget for the next member. */
  resetSearchBudget(): void {
    this.#budget = SEARCH_BUDGET;
  }

  /** Search steps that the rules of the last member have taken. */
  get spentSearchSteps(): number {
    return SEARCH_BUDGET - this.#budget;
  }

  /** Takes steps from the search budget of the member; false if not enough are left. */
  spendSearchSteps(steps: number): boolean {
    if (steps > this.#budget) return false;
    this.#budget -= steps;
    return true;
  }
}

const arrayOrEmpty = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? value : [];

/** Returns the event in the format for clients. Source: client-server API, "Room event format". */
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
