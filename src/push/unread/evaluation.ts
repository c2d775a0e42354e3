import { whenReady } from '../../kernel/when-ready.ts';
import { membershipOf } from '../../protocol/index.ts';
import { isHidden, type RoomReader, type StoredEvent } from '../../room-engine/index.ts';
import { isReadOnMainTimeline, type NotifiedMember } from '../evaluation/member.ts';
import { outcomeFor } from '../evaluation/outcome.ts';
import type { PreparedEvent, PushEvents } from '../evaluation/push-events.ts';
import { SearchCount } from '../evaluation/search-count.ts';
import type { UnreadMark } from '../unread-mark.ts';
import { maxMarks, type NewMarks } from './tally.ts';

/** Number of events that are evaluated before other requests are processed. */
const eventsPerTurn = 100;

const noThreads: ReadonlySet<string | undefined> = new Set();
const noPositions: ReadonlySet<number> = new Set();

/**
 * Evaluates, for one user, the events of a room since the last evaluation, newest first. Stops after `maxMarks` events,
 * at the user's own join, or once the rules of the user have taken `maxSearchSteps`; older events are left out.
 * Source: client-server API, "Receiving notifications" and "Marking notifications as read".
 */
export class Evaluation implements NewMarks {
  readonly marks: UnreadMark[] = [];
  /** Made on first use, because most evaluations do not need it. */
  #ownThreads: Set<string | undefined> | undefined;
  /** Made on first use, because most evaluations do not need it. */
  #redacted: Set<number> | undefined;
  dropsOlder = false;
  /** Number of evaluated events. */
  count = 0;
  /** Number of evaluated events that were read from the database. */
  readCount = 0;
  /**
   * Whether the events of the current page were read from the database. They are then prepared without the cache, because
   * other users rarely need them.
   */
  #isFromDatabase = false;
  readonly #engine: RoomReader;
  readonly #pushEvents: PushEvents;
  /** The user whose unread events are counted, as a member of the room. */
  readonly #member: NotifiedMember;
  readonly #hasOlderMarks: boolean;
  readonly #searches = new SearchCount();

  /** @param hasOlderMarks whether earlier evaluations counted events, which newer events may redact */
  constructor(engine: RoomReader, pushEvents: PushEvents, member: NotifiedMember, hasOlderMarks: boolean) {
    this.#engine = engine;
    this.#pushEvents = pushEvents;
    this.#member = member;
    this.#hasOlderMarks = hasOlderMarks;
  }

  get ownThreads(): ReadonlySet<string | undefined> {
    return this.#ownThreads ?? noThreads;
  }

  get redacted(): ReadonlySet<number> {
    return this.#redacted ?? noPositions;
  }

  /**
   * Evaluates the events in `(after, upTo]`, without stopping other requests for long. Returns without a
   * promise when all data that the evaluation needs are in memory, as for all members of a room but the first one.
   */
  run(after: number, upTo: number): void | Promise<void> {
    return whenReady(this.#page(after, upTo + 1), (events) => this.#evaluatePage(events, after));
  }

  /** Evaluates a page of events from an index on, and then the older pages. */
  #evaluatePage(events: readonly StoredEvent[], after: number, from = 0): void | Promise<void> {
    for (let index = from; index < events.length && !this.dropsOlder; index++) {
      const pending = this.#evaluate(events[index]!) ?? this.#searches.pauseIfDue();
      if (pending) return pending.then(() => this.#evaluatePage(events, after, index + 1));
    }
    this.count += events.length;
    if (this.#isFromDatabase) this.readCount += events.length;
    if (this.dropsOlder || events.length < eventsPerTurn) return;
    if (this.count >= maxMarks) this.dropsOlder = true;
    else return this.#nextPage(after, events.at(-1)?.stream ?? after);
  }

  async #nextPage(after: number, before: number): Promise<void> {
    await new Promise(setImmediate);
    await this.run(after, before - 1);
  }

  /** Returns the newest events between two positions, newest first. */
  #page(after: number, before: number): readonly StoredEvent[] | Promise<StoredEvent[]> {
    const { head } = this.#member;
    const range = { after, before, limit: eventsPerTurn, direction: 'backward' } as const;
    const recent = this.#recent(after, before);
    this.#isFromDatabase = recent === undefined;
    return recent ?? this.#engine.events.timelineUncached(head.roomNid, range);
  }

  /** Returns a page from memory if all events between the two positions are there. */
  #recent(after: number, before: number): StoredEvent[] | undefined {
    const { recent } = this.#member.head;
    const first = recent[0];
    if (first?.stream === undefined) return undefined;
    const isStartOfRoom = first.event.type === 'm.room.create';
    if (first.stream > after && !isStartOfRoom) return undefined;
    const events: StoredEvent[] = [];
    for (let index = recent.length - 1; index >= 0 && events.length < eventsPerTurn; index--) {
      const stored = recent[index];
      if (stored?.stream === undefined || stored.stream >= before) continue;
      if (stored.stream <= after) break;
      events.push(stored);
    }
    return events;
  }

  #evaluate(stored: StoredEvent): void | Promise<void> {
    const { type, sender, redacts } = stored.event;
    if (isHidden(stored)) return;
    if (type === 'm.room.member' && this.#isOwn(sender)) return this.#evaluateOwnMembership(stored);
    if (type === 'm.room.redaction' && this.#hasOlderMarks)
      return this.#noteRedaction(redacts).then(() => this.#prepareUnread(stored));
    return this.#prepareUnread(stored);
  }

  /** Prepares an event, unless it is certainly read, and adds a mark if it is unread and notifies the user. */
  #prepareUnread(stored: StoredEvent): void | Promise<void> {
    if (isReadOnMainTimeline(stored, this.#member.read)) return;
    const { head } = this.#member;
    const prepared = this.#isFromDatabase
      ? this.#pushEvents.getUncached(head, stored)
      : this.#pushEvents.get(head, stored);
    return whenReady(prepared, (event) => this.#addMarkIfUnread(stored, event));
  }

  async #evaluateOwnMembership(stored: StoredEvent): Promise<void> {
    const { sender, stateKey } = stored.event;
    if (stateKey === sender && (await this.#isJoin(stored))) this.dropsOlder = true;
  }

  /**
   * Adds a mark for the event if it is unread and notifies the user. A user who sends an event has read the events
   * before it in its thread. Exceptions are redactions and the user's own membership events, for instance one with a
   * new display name, which is sent to all rooms.
   */
  #addMarkIfUnread(stored: StoredEvent, prepared: PreparedEvent): void {
    const { stream = 0 } = stored;
    const { threadId } = prepared;
    const { type, sender } = stored.event;
    if (this.#isOwn(sender)) {
      if (type !== 'm.room.redaction') {
        this.#ownThreads ??= new Set();
        this.#ownThreads.add(threadId);
      }
      return;
    }
    if (this.ownThreads.has(threadId) || stream <= this.#member.read.thread(threadId)) return;
    const { notify, highlight } = outcomeFor(this.#member, stored, prepared, this.#searches);
    if (this.#searches.isUsedUp) this.dropsOlder = true;
    if (!notify) return;
    const mark = highlight ? prepared.marks.highlight : prepared.marks.plain;
    // The event may have been assigned its position on the stream after it was prepared.
    this.marks.push(mark.stream === stream ? mark : { ...mark, stream });
  }

  #isOwn(sender: string): boolean {
    return sender === this.#member.member.userId;
  }

  /** Reports whether the user was not joined before this membership event, and is joined after it. */
  async #isJoin({ event, replaces }: StoredEvent): Promise<boolean> {
    if (membershipOf(event.content) !== 'join') return false;
    const previous = replaces === undefined ? undefined : await this.#engine.events.get(replaces);
    return membershipOf(previous?.event.content) !== 'join';
  }

  async #noteRedaction(eventId: string | undefined): Promise<void> {
    const target = eventId === undefined ? undefined : await this.#engine.events.getById(eventId);
    if (target?.redactedBy === undefined || target.stream === undefined) return;
    this.#redacted ??= new Set();
    this.#redacted.add(target.stream);
  }
}
