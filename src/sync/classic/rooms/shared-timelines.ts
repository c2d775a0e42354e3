import { allReady } from '../../../kernel/when-ready.ts';
import {
  isExpired,
  isHidden,
  isHiddenFromUser,
  type MessageRetention,
  type RoomHead,
  type StoredEvent,
} from '../../../room-engine/index.ts';
import type { SharedText } from '../../../rooms/index.ts';
import { encodePlace, type VisibleEvent } from '../../../rooms/index.ts';
import type { Range } from '../../../sync-contract/index.ts';
import type { EventText } from './event-text.ts';
import { timelineText } from './room-text.ts';

/**
 * Maximum number of events in a shared timeline: a client that was away for longer is likely the only client that needs
 * it.
 */
const maxEvents = 50;

/** Maximum number of shared timelines that end with the newest event of a room. */
const maxTimelines = 8;

/** Maximum number of characters of the text that a shared timeline caches. */
const maxCachedLength = 65_536;

const noUsers: ReadonlySet<string> = new Set();

/** A part of a room's timeline without state events. It is the same for all users who were joined at each of its events. */
export class SharedTimeline {
  /** Oldest first. */
  readonly events: readonly StoredEvent[];
  readonly senders: ReadonlySet<string>;
  readonly #texts: readonly SharedText[];
  readonly #prevBatch: string;
  /** The last result of `text`. */
  #text = '';
  /** When `#text` was made: the ages of its events depend on this time. */
  #madeAt = Number.NaN;

  constructor(events: readonly [StoredEvent, ...StoredEvent[]], texts: readonly SharedText[]) {
    const [{ stream = 0 }] = events;
    this.events = events;
    this.senders = new Set(events.map((stored) => stored.event.sender));
    this.#texts = texts;
    this.#prevBatch = encodePlace({ position: stream - 1 });
  }

  /** Whether the timeline consists of these events with their current texts. */
  isOf(events: readonly StoredEvent[], textOf: (stored: StoredEvent) => SharedText | undefined): boolean {
    return this.events.every(
      (stored, index) => stored === events[index] && textOf(stored) === this.#texts[index],
    );
  }

  /**
   * Returns the `timeline` of a room's entry as JSON text.
   * @param now milliseconds since the epoch
   */
  text(now: number): string {
    if (this.#madeAt === now) return this.#text;
    const texts = this.#texts.map((text) => text.at(now, 'join'));
    const timeline = timelineText({ limited: false, prevBatch: this.#prevBatch }, texts);
    if (timeline.length <= maxCachedLength) {
      this.#text = timeline;
      this.#madeAt = now;
    }
    return timeline;
  }
}

/**
 * Timelines that end with the same event, by the nid of their first event; `undefined` for timelines that cannot be
 * shared.
 */
interface NewestTimelines {
  readonly last: StoredEvent;
  readonly byFirst: Map<number, SharedTimeline | undefined>;
}

/** The newest timelines of rooms, made once for all members, because one message wakes all of them at the same time. */
export class SharedTimelines {
  readonly #text: EventText;
  readonly #retention: MessageRetention;
  readonly #newest = new WeakMap<RoomHead, NewestTimelines>();

  constructor(text: EventText, retention: MessageRetention) {
    this.#text = text;
    this.#retention = retention;
  }

  /**
   * Returns the timeline of a range, without a promise when its events have been rendered. Returns `undefined` when the
   * timeline requires a database query, or when an event of it changes the state or does not look the same to all
   * members. Never rejects: after an error it returns `undefined`, and the caller meets the error when it reads the
   * timeline itself.
   */
  find(head: RoomHead, range: Range): SharedTimeline | undefined | Promise<SharedTimeline | undefined> {
    const timeline = this.#find(head, range);
    if (!(timeline instanceof Promise)) return timeline;
    return timeline.then(
      () => {
        const rendered = this.#find(head, range);
        if (!(rendered instanceof Promise)) return rendered;
        rendered.catch(() => undefined);
        return undefined;
      },
      () => undefined,
    );
  }

  /** @returns a promise when the events must be rendered first */
  #find(head: RoomHead, { after, upTo }: Range): SharedTimeline | undefined | Promise<unknown> {
    if (head.completedAt > after) return undefined;
    const events = recentEvents(head, after, upTo);
    if (!events) return undefined;
    const expiredBefore = this.#retention.expiredBefore(head);
    if (typeof expiredBefore !== 'number') return expiredBefore;
    if (events.some((stored) => isExpired(stored, expiredBefore))) return undefined;
    const last = events[events.length - 1]!;
    let newest = this.#newest.get(head);
    if (newest?.last !== last) {
      newest = { last, byFirst: new Map() };
      this.#newest.set(head, newest);
    }
    const first = events[0].nid;
    const cached = newest.byFirst.get(first);
    // The text of an event changes, for instance, by a redaction that is not on the timeline itself.
    if (cached ? cached.isOf(events, (stored) => this.#text.peek(stored)) : newest.byFirst.has(first))
      return cached;
    const timeline = this.#make(events);
    if (timeline instanceof Promise) return timeline;
    if (newest.byFirst.size >= maxTimelines) newest.byFirst.clear();
    newest.byFirst.set(first, timeline);
    return timeline;
  }

  #make(events: readonly [StoredEvent, ...StoredEvent[]]): SharedTimeline | undefined | Promise<unknown> {
    if (!events.every(isPlain)) return undefined;
    const text = this.#text;
    const parents = text.relations.parents(events.map(asMember));
    if (parents instanceof Promise) return parents;
    if (parents.size > 0) return undefined;
    const missing = events.filter((stored) => !text.peek(stored));
    const preparing = allReady(missing.map((stored) => text.prepare(asMember(stored))));
    if (preparing instanceof Promise) return preparing;
    return new SharedTimeline(
      events,
      events.map((stored) => text.peek(stored)!),
    );
  }
}

/**
 * Returns the events of the timeline in `(after, upTo]`, oldest first; `undefined` when there are none, too
 * many, or some are not in memory.
 */
function recentEvents(
  { recent }: RoomHead,
  after: number,
  upTo: number,
): readonly [StoredEvent, ...StoredEvent[]] | undefined {
  let end = recent.length;
  while (end > 0 && (recent[end - 1]?.stream ?? 0) > upTo) end--;
  let start = end;
  while (start > 0 && (recent[start - 1]?.stream ?? 0) > after) start--;
  // If the oldest event in memory is in the range, there may be older events in the range.
  if (start === 0 || start === end || end - start > maxEvents) return undefined;
  const [first, ...later] = recent.slice(start, end);
  return first && [first, ...later];
}

/** Whether an event looks the same to all members and changes no state. */
function isPlain(stored: StoredEvent): boolean {
  const { event, stream, resolves, followsGap } = stored;
  if (isHidden(stored) || resolves || followsGap || stream === undefined) return false;
  return event.stateKey === undefined && !isHiddenFromUser(event, noUsers);
}

const asMember = (stored: StoredEvent): VisibleEvent => ({ stored, membership: 'join' });
