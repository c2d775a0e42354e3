import { LoadOnce } from '../../../kernel/load-once.ts';
import { isLeftOut, type RoomEngine, type RoomHead, type StoredEvent } from '../../../room-engine/index.ts';
import { encodePlace, placeBefore, type VisibleEvent } from '../../../rooms/index.ts';
import type { SyncSources } from '../../sources.ts';
import type { EventText, SharedText } from './event-text.ts';
import { timelineText } from './room-text.ts';

/** More events than these are not told from here: one who was away for so long is likely the only one. */
const maxEvents = 50;

/** Of how many stretches that end with the same event the news are kept, and characters of the text of one. */
const [maxStretches, longestKept] = [8, 65_536];

const nobody: ReadonlySet<string> = new Set();

/** What was said in a stretch of a room's timeline, the same for all members who were there all the while. */
export class News {
  /** Oldest first. */
  readonly events: readonly StoredEvent[];
  readonly senders: ReadonlySet<string>;
  readonly #texts: readonly SharedText[];
  readonly #prevBatch: string;
  /** The text as it was made last, and when: the ages of the events are in it. */
  #text = '';
  #madeAt = Number.NaN;

  constructor(events: readonly [StoredEvent, ...StoredEvent[]], texts: readonly SharedText[]) {
    const [{ event, stream = 0 }] = events;
    this.events = events;
    this.senders = new Set(events.map((stored) => stored.event.sender));
    this.#texts = texts;
    this.#prevBatch = encodePlace(placeBefore(event, stream));
  }

  /** Whether it is made of these events, as they are told now. @param textOf what is told of an event */
  isOf(events: readonly StoredEvent[], textOf: (stored: StoredEvent) => SharedText | undefined): boolean {
    return this.events.every(
      (stored, index) => stored === events[index] && textOf(stored) === this.#texts[index],
    );
  }

  /** The timeline of an answer that holds all of the events, as JSON text. @param now milliseconds since 1970 */
  timeline(now: number): string {
    if (this.#madeAt === now) return this.#text;
    const texts = this.#texts.map((text) => text.at(now, 'join'));
    const timeline = timelineText({ limited: false, prevBatch: this.#prevBatch }, texts);
    if (timeline.length <= longestKept) [this.#text, this.#madeAt] = [timeline, now];
    return timeline;
  }
}

/** The news that end with the same event, by the event with which they begin; `undefined` where they are not plain. */
interface Latest {
  readonly last: StoredEvent;
  readonly byFirst: Map<number, News | undefined>;
}

export interface RoomNewsDeps {
  readonly engine: RoomEngine;
  readonly text: EventText;
  readonly sources: Pick<SyncSources, 'unread'>;
}

/** The news of rooms. A message wakes all members at once, and what each of them is told of it is made once. */
export class RoomNews {
  readonly #deps: RoomNewsDeps;
  readonly #latest = new WeakMap<RoomHead, Latest>();
  readonly #preparing = new LoadOnce<StoredEvent, unknown>();

  constructor(deps: RoomNewsDeps) {
    this.#deps = deps;
  }

  /**
   * What was said in `(after, upTo]`. A promise: it is being prepared, ask again; it does not reject. `undefined`: it
   * takes more than is in memory, or more has happened than that something was said.
   */
  find(head: RoomHead, after: number, upTo: number): News | Promise<void> | undefined {
    if (head.completedAt > after) return undefined;
    const events = recentEvents(head, after, upTo);
    if (!events) return undefined;
    const last = events[events.length - 1]!;
    let latest = this.#latest.get(head);
    if (latest?.last !== last) {
      latest = { last, byFirst: new Map() };
      this.#latest.set(head, latest);
    }
    const first = events[0].nid;
    const known = latest.byFirst.get(first);
    // A redaction that has no place on the timeline itself, for instance, changes what is told of an event.
    if (known ? known.isOf(events, (stored) => this.#deps.text.peek(stored)) : latest.byFirst.has(first))
      return known;
    const made = this.#make(head, events);
    if (made instanceof Promise) return made.catch(() => undefined);
    if (latest.byFirst.size >= maxStretches) latest.byFirst.clear();
    latest.byFirst.set(first, made);
    return made;
  }

  #make(head: RoomHead, events: readonly [StoredEvent, ...StoredEvent[]]): News | Promise<void> | undefined {
    if (!events.every(isPlain)) return undefined;
    const { text, sources } = this.#deps;
    const visible = events.map(asMember);
    const parents = text.relations.parents(visible);
    if (parents instanceof Promise) return parents.then(() => undefined);
    if (parents.size > 0) return undefined;
    const missing = events.filter((stored) => !text.peek(stored) || !sources.unread.isPrepared(stored));
    if (missing.length > 0) return this.#prepare(head, missing);
    return new News(
      events,
      events.map((stored) => text.peek(stored)!),
    );
  }

  async #prepare(head: RoomHead, events: readonly StoredEvent[]): Promise<void> {
    await Promise.all(events.map((stored) => this.#prepareOnce(head, stored)));
  }

  #prepareOnce(head: RoomHead, stored: StoredEvent): Promise<unknown> {
    const { text, sources } = this.#deps;
    return this.#preparing.run(stored, () =>
      Promise.all([text.prepare(asMember(stored)), sources.unread.prepare(head, stored)]),
    );
  }
}

/** The events of the timeline in `(after, upTo]`, oldest first; `undefined`: none, too many, or not all in memory. */
function recentEvents(
  { recent }: RoomHead,
  after: number,
  upTo: number,
): readonly [StoredEvent, ...StoredEvent[]] | undefined {
  let end = recent.length;
  while (end > 0 && (recent[end - 1]?.stream ?? 0) > upTo) end--;
  let start = end;
  while (start > 0 && (recent[start - 1]?.stream ?? 0) > after) start--;
  // Where the oldest that is in memory is new, there may be others before it.
  if (start === 0 || start === end || end - start > maxEvents) return undefined;
  const [first, ...others] = recent.slice(start, end);
  return first && [first, ...others];
}

/** Whether an event does nothing but say something, to everybody. */
function isPlain({ event, stream, rejected, softFailed, resolves, followsGap }: StoredEvent): boolean {
  if (rejected || softFailed || resolves || followsGap || stream === undefined) return false;
  return event.stateKey === undefined && !isLeftOut(event, nobody);
}

const asMember = (stored: StoredEvent): VisibleEvent => ({ stored, membership: 'join' });
