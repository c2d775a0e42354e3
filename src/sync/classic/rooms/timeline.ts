import type { Filter } from '../../../filters/index.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import {
  isHidden,
  isHiddenFromUser,
  type RoomHead,
  type RoomReader,
  type StoredEvent,
  sizeOfEvent,
  unexpired,
} from '../../../room-engine/index.ts';
import {
  encodePlace,
  type HistorySource,
  placeBefore,
  type RoomView,
  type VisibleEvent,
} from '../../../rooms/index.ts';

/** The timeline of one room. */
export interface Timeline {
  /** Oldest first. */
  readonly events: readonly VisibleEvent[];
  /**
   * Whether events between the last sync and the first event of `events` were left out, or are missing on this server.
   */
  readonly limited: boolean;
  /** Token for reading older events. */
  readonly prevBatch: string;
  /** Whether events that are not in `events` may have changed the state. */
  readonly hidesState: boolean;
}

export interface TimelineRequest {
  /** The user who reads the timeline. */
  readonly userId: string;
  /** Events after this stream position are read; `undefined`: from the start of the room. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** Maximum number of events. */
  readonly limit: number;
  /** Decides which events the user may see; `undefined` when the user was joined all the time and may see all. */
  readonly view: RoomView | undefined;
  /**
   * Whether the timeline includes the events of the current state, except memberships, that the history visibility
   * hides. The user must be joined, and so may read the current state.
   */
  readonly showsCurrentState?: boolean;
}

/** Maximum number of pages that are read while the filter or history visibility hides events. */
const maxPages = 6;

/**
 * Minimum number of events on the first page. The minimum doubles with each page, so that a few pages reach far back
 * when the filter passes few events: a timeline is limited when the pages do not reach the start of its range.
 */
const firstPage = 10;

/**
 * Maximum number of events that are read together, because an event may have 64 KiB. Most timelines have fewer events.
 */
const eventsAtOnce = 40;

/**
 * Estimated bytes of read events above which the timeline ends and is limited. Only events of pages that have more than
 * `eventsAtOnce` events are counted.
 */
const maxBytes = 2_097_152;

/** Maximum number of pages when the filter passes no event or the limit is 0. */
const maxPagesWithoutEvents = 3;

/** Reads the newest events of a room in `(after, upTo]` that the user may see and the filter wants. */
export async function readTimeline(
  { engine, relations }: HistorySource,
  head: RoomHead,
  filter: Filter,
  { userId, after, upTo, limit, view, showsCurrentState = false }: TimelineRequest,
): Promise<Timeline> {
  const { timeline: wanted } = filter.room;
  const passesRoom = wanted.passesRoom(head.roomId);
  const isWanted = ({ stored }: VisibleEvent) => passesRoom && wanted.passes(stored.event);
  const isEmpty = !passesRoom || wanted.passesNothing || limit === 0;
  const pages = isEmpty ? maxPagesWithoutEvents : maxPages;
  const ignored = await engine.ignored.of(userId);
  const expiredBefore = await engine.retention.expiredBefore(head);
  const isShown = showsCurrentState ? (stored: StoredEvent) => isInCurrentState(stored, head) : undefined;
  const readEvents: StoredEvent[] = [];
  const chosen: VisibleEvent[] = [];
  let reachedStart = false;
  let reachedGap = false;
  let bytes = 0;
  const isOver = () => reachedStart || reachedGap || bytes > maxBytes;
  for (let page = 0; page < pages && chosen.length <= limit && !isOver(); page++) {
    const size = Math.max(limit + 1 - chosen.length, firstPage << page);
    const read: StoredEvent[] = [];
    while (read.length < size && bytes <= maxBytes && !reachedStart) {
      const part = Math.min(size - read.length, eventsAtOnce);
      const last = read.at(-1) ?? readEvents.at(-1);
      const events = await readBackward(engine, head, { after, upTo, last, limit: part });
      reachedStart = events.length < part;
      for (const stored of size > eventsAtOnce ? events : []) bytes += sizeOfEvent(stored);
      read.push(...events);
    }
    // When an event with `followsGap` was placed, events before it were missing: they are still missing, or were
    // backfilled, and so were not sent to the client.
    const gap = read.findIndex(({ followsGap }) => followsGap);
    reachedGap = gap >= 0;
    if (reachedGap) read.splice(gap + 1);
    readEvents.push(...read);
    const readable = (
      view ? await view.displayable(read, isShown) : asJoined(unexpired(read, expiredBefore), ignored)
    ).filter(isWanted);
    chosen.push(...(await relations.filterByRelations(readable, wanted.relatedBy, view)));
  }
  const limited = chosen.length > limit || !reachedStart || reachedGap;
  const shown = chosen.slice(0, limit);
  const shownNids = new Set(shown.map(({ stored }) => stored.nid));
  const oldest = limited ? shown.at(-1)?.stored : readEvents.at(-1);
  return {
    events: shown.reverse(),
    limited,
    // A client that wants no timeline receives the end of the range as a token, to read events and members there.
    prevBatch: prevBatchOf(isEmpty ? undefined : oldest, { after, upTo }),
    // `resolves`: state resolution at this event changed more of the state than the event's own entry.
    hidesState:
      limited ||
      (after !== undefined && head.completedAt > after) ||
      readEvents.some(
        ({ nid, event, resolves }) => resolves || (event.stateKey !== undefined && !shownNids.has(nid)),
      ),
  };
}

/**
 * Returns the token for reading older events. After an incremental sync it is a position on the stream, which leads to
 * all events that came before it on the stream. A token with a depth (`placeBefore`) would skip events that the client
 * has not received, because late events have small depths.
 */
function prevBatchOf(
  oldest: StoredEvent | undefined,
  { after, upTo }: Pick<TimelineRequest, 'after' | 'upTo'>,
): string {
  if (!oldest) return encodePlace({ position: upTo });
  const { event, stream = 0 } = oldest;
  return encodePlace(after === undefined ? placeBefore(event, stream) : { position: stream - 1 });
}

function asJoined(events: readonly StoredEvent[], ignored: ReadonlySet<string>): VisibleEvent[] {
  return events
    .filter((stored) => !isHidden(stored) && !isHiddenFromUser(stored.event, ignored))
    .map((stored) => ({ stored, membership: 'join' }));
}

/** Whether the event is in the current state of its room and is no membership. */
function isInCurrentState({ nid, event: { type, stateKey } }: StoredEvent, { state }: RoomHead): boolean {
  if (stateKey === undefined || type === 'm.room.member') return false;
  return state.get(stateMapKey(type, stateKey))?.nid === nid;
}

/** Whether the event is the first event in the history of its room. */
const beginsRoom = (stored: StoredEvent | undefined): boolean =>
  stored?.event.type === 'm.room.create' && stored.event.stateKey === '';

/**
 * Returns events of `(after, upTo]` before `last`, newest first: from memory when the head holds all of them. Without
 * `after`, the order is that of the room's history, so that old events that arrived late are where they belong. With
 * `after`, it is the order of the stream, so that the client receives all new events.
 */
async function readBackward(
  engine: RoomReader,
  head: RoomHead,
  {
    after,
    upTo,
    last,
    limit,
  }: { after: number | undefined; upTo: number; last: StoredEvent | undefined; limit: number },
): Promise<StoredEvent[]> {
  const { recent } = head;
  const before = last?.stream ?? upTo + 1;
  const oldest = recent[0]?.stream;
  const page: StoredEvent[] = [];
  // Events after the last event that arrived late have the same order on the stream and in the history.
  const start = after ?? head.lateAt;
  for (let index = recent.length - 1; index >= 0 && page.length < limit; index--) {
    const stored = recent[index];
    if (stored?.stream === undefined || stored.stream >= before) continue;
    if (stored.stream <= start) break;
    page.push(stored);
  }
  const isComplete =
    page.length === limit ||
    (after === undefined ? beginsRoom(page.at(-1)) : oldest !== undefined && oldest <= after);
  if (isComplete) return page;
  if (after !== undefined) {
    return engine.events.timeline(head.roomNid, { after, before, limit, direction: 'backward' });
  }
  const from = last && placeBefore(last.event, last.stream ?? 0);
  return engine.events.history(head.roomNid, from, { after: 0, upTo, limit, direction: 'backward' });
}
