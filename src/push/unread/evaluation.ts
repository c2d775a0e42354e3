import { whenReady } from '../../kernel/when-ready.ts';
import { membershipOf, stateMapKey } from '../../protocol/index.ts';
import { isHidden, type RoomReader, type StoredEvent } from '../../room-engine/index.ts';
import { isReadOnMainTimeline, type NotifiedMember } from '../evaluation/member.ts';
import { outcomeFor } from '../evaluation/outcome.ts';
import type { PreparedEvent, PushEvents } from '../evaluation/push-events.ts';
import { maxMarks, type NewMarks, type UnreadMark } from './tally.ts';

/** Number of events that are evaluated before other requests are processed. */
const slice = 100;

const noThreads: ReadonlySet<string | undefined> = new Set();
const noPositions: ReadonlySet<number> = new Set();

/**
 * Evaluates the events of a room since the last evaluation for one user, newest first, and at most as many as are
 * counted: for users who were away for longer, older events are left out.
 * Source: client-server API, "Receiving notifications" and "Marking notifications as read".
 */
export class Evaluation implements NewMarks {
  readonly marks: UnreadMark[] = [];
  // Most evaluations need neither set, so they are made on first use.
  #ownThreads: Set<string | undefined> | undefined;
  #redacted: Set<number> | undefined;
  startsAnew = false;
  /** Number of evaluated events. */
  count = 0;
  readonly #engine: RoomReader;
  readonly #pushEvents: PushEvents;
  /** The user whose unread events are counted, and the room. */
  readonly #reader: NotifiedMember;

  constructor(engine: RoomReader, pushEvents: PushEvents, reader: NotifiedMember) {
    this.#engine = engine;
    this.#pushEvents = pushEvents;
    this.#reader = reader;
  }

  get ownThreads(): ReadonlySet<string | undefined> {
    return this.#ownThreads ?? noThreads;
  }

  get redacted(): ReadonlySet<number> {
    return this.#redacted ?? noPositions;
  }

  /**
   * Evaluates the events in `(after, upTo]`, without stopping other requests for long. Returns at once when everything
   * that it needs is in memory, as it is for all members of a room but the first one.
   */
  run(after: number, upTo: number): void | Promise<void> {
    return whenReady(this.#page(after, upTo + 1), (events) => this.#lookAt(events, after));
  }

  /** Evaluates a page of events from an index on, and then the older pages. */
  #lookAt(events: readonly StoredEvent[], after: number, from = 0): void | Promise<void> {
    for (let index = from; index < events.length && !this.startsAnew; index++) {
      const waiting = this.#look(events[index]!);
      if (waiting) return waiting.then(() => this.#lookAt(events, after, index + 1));
    }
    this.count += events.length;
    if (this.startsAnew || events.length < slice) return;
    if (this.count >= maxMarks) this.startsAnew = true;
    else return this.#nextPage(after, events.at(-1)?.stream ?? after);
  }

  async #nextPage(after: number, before: number): Promise<void> {
    await new Promise(setImmediate);
    await this.run(after, before - 1);
  }

  /** Returns the newest events between two positions, newest first. */
  #page(after: number, before: number): readonly StoredEvent[] | Promise<StoredEvent[]> {
    const { head } = this.#reader;
    const range = { after, before, limit: slice, direction: 'backward' } as const;
    return this.#recent(after, before) ?? this.#engine.events.timeline(head.roomNid, range);
  }

  /** Returns a page from memory if all events between the two positions are there. */
  #recent(after: number, before: number): StoredEvent[] | undefined {
    const { recent } = this.#reader.head;
    const first = recent[0];
    if (first?.stream === undefined) return undefined;
    const isBeginning = first.event.type === 'm.room.create';
    if (first.stream > after && !isBeginning) return undefined;
    const events: StoredEvent[] = [];
    for (let index = recent.length - 1; index >= 0 && events.length < slice; index--) {
      const stored = recent[index];
      if (stored?.stream === undefined || stored.stream >= before) continue;
      if (stored.stream <= after) break;
      events.push(stored);
    }
    return events;
  }

  #look(stored: StoredEvent): void | Promise<void> {
    const { type, sender, redacts } = stored.event;
    if (isHidden(stored)) return;
    if (type === 'm.room.member' && this.#isOwn(sender)) return this.#lookAtOwnMembership(stored);
    if (type === 'm.room.redaction')
      return this.#noteRedaction(redacts).then(() => this.#countUnread(stored));
    return this.#countUnread(stored);
  }

  #countUnread(stored: StoredEvent): void | Promise<void> {
    if (isReadOnMainTimeline(stored, this.#reader.read)) return;
    const prepared = this.#pushEvents.get(this.#reader.head, stored);
    return whenReady(prepared, (event) => this.#count(stored, event));
  }

  async #lookAtOwnMembership(stored: StoredEvent): Promise<void> {
    const { sender, stateKey } = stored.event;
    if (stateKey === sender && (await this.#isJoin(stored))) this.startsAnew = true;
  }

  /**
   * A user who sends an event has read the events before it. Exceptions are redactions and the user's own membership
   * events, for instance one with a new display name, which is sent to all rooms.
   */
  #count(stored: StoredEvent, prepared: PreparedEvent): void {
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
    if (this.ownThreads.has(threadId) || stream <= this.#reader.read.thread(threadId)) return;
    const { notify, highlight } = outcomeFor(this.#reader, stored, prepared);
    if (notify) this.marks.push({ stream, highlight, threadId });
  }

  #isOwn(sender: string): boolean {
    return sender === this.#reader.member.userId;
  }

  async #isJoin({ event, stateBefore }: StoredEvent): Promise<boolean> {
    if (membershipOf(event.content) !== 'join') return false;
    const { groups, stateKeys, events } = this.#engine;
    const key = await stateKeys.find(stateMapKey('m.room.member', event.sender));
    if (stateBefore === undefined || key === undefined) return true;
    const states = await groups.entries([stateBefore], [key]);
    const nid = states.get(stateBefore)?.get(key);
    const before = nid === undefined ? undefined : await events.get(nid);
    return membershipOf(before?.event.content) !== 'join';
  }

  async #noteRedaction(eventId: string | undefined): Promise<void> {
    const target = eventId === undefined ? undefined : await this.#engine.events.getById(eventId);
    if (target?.redactedBy === undefined || target.stream === undefined) return;
    this.#redacted ??= new Set();
    this.#redacted.add(target.stream);
  }
}
