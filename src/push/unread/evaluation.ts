import {
  type CompiledRuleset,
  evaluateRules,
  MAIN_TIMELINE,
  membershipOf,
  type PushMember,
  relationOf,
  stateKeyOf,
} from '../../protocol/index.ts';
import { type ReadUpTo, threadIdOf } from '../../receipts/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../rooms/index.ts';
import type { PushEvents } from './push-events.ts';
import type { NewMarks, UnreadMark } from './tally.ts';

/** Whose unread events are looked for, and where. */
export interface Reader {
  readonly head: RoomHead;
  readonly member: PushMember;
  readonly rules: CompiledRuleset;
  readonly read: ReadUpTo;
  /** Whose events never notify the user. */
  readonly ignored: ReadonlySet<string>;
}

/** Events that are evaluated before others get their turn. */
const slice = 100;

/**
 * How many new events are looked at, the newest: who was away for longer has lost count anyhow, and no room's history
 * is so long that opening it could stop the server.
 */
const mostEvents = 2_000;

/**
 * One look at the events of a room that are new to one user, newest first.
 * Source: client-server API, "Receiving notifications" and "Marking notifications as read".
 */
export class Evaluation implements NewMarks {
  readonly marks: UnreadMark[] = [];
  readonly ownThreads = new Set<string | undefined>();
  readonly redacted = new Set<number>();
  startsAnew = false;
  /** How many events were looked at. */
  count = 0;
  readonly #engine: RoomEngine;
  readonly #pushEvents: PushEvents;
  readonly #reader: Reader;

  constructor(engine: RoomEngine, pushEvents: PushEvents, reader: Reader) {
    this.#engine = engine;
    this.#pushEvents = pushEvents;
    this.#reader = reader;
  }

  /** Looks at the events in `(after, upTo]`, without stopping others for long. */
  async run(after: number, upTo: number): Promise<void> {
    for (let before = upTo + 1; !this.startsAnew; ) {
      const events = await this.#page(after, before);
      for (const stored of events) {
        if (this.startsAnew) break;
        await this.#look(stored);
      }
      this.count += events.length;
      before = events.at(-1)?.stream ?? after;
      if (events.length < slice) break;
      if (this.count >= mostEvents) this.startsAnew = true;
      await new Promise(setImmediate);
    }
  }

  /** The newest events between two positions, newest first: from memory when all of them are there. */
  async #page(after: number, before: number): Promise<readonly StoredEvent[]> {
    const { recent, roomNid } = this.#reader.head;
    const first = recent[0]?.stream;
    if (first === undefined || first > after) {
      const range = { after, before, limit: slice, direction: 'backward' } as const;
      return this.#engine.events.timeline(roomNid, range);
    }
    const events: StoredEvent[] = [];
    for (let index = recent.length - 1; index >= 0 && events.length < slice; index--) {
      const stored = recent[index];
      if (stored?.stream === undefined || stored.stream >= before) continue;
      if (stored.stream <= after) break;
      events.push(stored);
    }
    return events;
  }

  async #look(stored: StoredEvent): Promise<void> {
    const { event, stream = 0 } = stored;
    if (stored.rejected || stored.softFailed) return;
    if (event.type === 'm.room.redaction') await this.#noteRedaction(event.redacts);
    if (event.sender === this.#reader.member.userId) return this.#lookAtOwn(stored);
    if (stored.redactedBy !== undefined || this.#reader.ignored.has(event.sender)) return;
    const threadId = await this.#threadOf(stored);
    if (this.ownThreads.has(threadId) || stream <= this.#reader.read.thread(threadId)) return;
    const { head, rules, member } = this.#reader;
    const outcome = evaluateRules(rules, await this.#pushEvents.get(head, stored), member);
    if (outcome.notify) this.marks.push({ stream, highlight: outcome.highlight, threadId });
  }

  /**
   * Who says something has read what was said before. A join begins anew; other events about one's own membership,
   * which a new display name sends to all rooms, and redactions, say nothing about what was read.
   */
  async #lookAtOwn(stored: StoredEvent): Promise<void> {
    const { type, stateKey, sender } = stored.event;
    if (type === 'm.room.redaction') return;
    if (type !== 'm.room.member') this.ownThreads.add(await this.#threadOf(stored));
    else if (stateKey === sender && (await this.#isJoin(stored))) this.startsAnew = true;
  }

  async #isJoin({ event, stateBefore }: StoredEvent): Promise<boolean> {
    if (membershipOf(event.content) !== 'join') return false;
    const { groups, stateKeys, events } = this.#engine;
    const key = await stateKeys.find(stateKeyOf('m.room.member', event.sender));
    if (stateBefore === undefined || key === undefined) return true;
    const states = await groups.entries([stateBefore], [key]);
    const nid = states.get(stateBefore)?.get(key);
    const before = nid === undefined ? undefined : await events.get(nid);
    return membershipOf(before?.event.content) !== 'join';
  }

  async #noteRedaction(eventId: string | undefined): Promise<void> {
    const target = eventId === undefined ? undefined : await this.#engine.events.getById(eventId);
    if (target?.redactedBy !== undefined && target.stream !== undefined) this.redacted.add(target.stream);
  }

  async #threadOf(stored: StoredEvent): Promise<string | undefined> {
    if (relationOf(stored.event.content) === undefined) return undefined;
    const threadId = await threadIdOf(this.#engine, stored);
    return threadId === MAIN_TIMELINE ? undefined : threadId;
  }
}
