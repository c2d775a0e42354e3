import type { Filter } from '../../../filters/index.ts';
import {
  isHiddenFromUser,
  type RoomHead,
  type RoomReader,
  type StoredEvent,
} from '../../../room-engine/index.ts';
import {
  encodePlace,
  type HistorySource,
  placeBefore,
  type RoomView,
  type VisibleEvent,
} from '../../../rooms/index.ts';

/** The timeline of one room in a sync. */
export interface Timeline {
  /** Oldest first. */
  readonly events: readonly VisibleEvent[];
  /** Events between the last sync and the first of these were left out, or are missing on this server. */
  readonly limited: boolean;
  /** Where to go on backwards. */
  readonly prevBatch: string;
  /** The state may have changed by events that are not among `events`. */
  readonly hidesState: boolean;
}

export interface TimelineRequest {
  /** For whom it is. */
  readonly userId: string;
  /** `undefined`: from the beginning, as far as the limit allows. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** Most events that the timeline may hold. */
  readonly limit: number;
  /** What the user may see; `undefined` when they were in the room all the time and so may see everything. */
  readonly view: RoomView | undefined;
}

/**
 * Pages that are read at the most while events are hidden from the user or by the filter. Each has twice as many events
 * as the one before, or as many as are wanted: a client that wants one kind of event among hundreds of others is not
 * told of a gap where nothing is missing.
 */
const [maxPages, firstPage] = [6, 10];

/** Of these, when no event is shown anyway. */
const pagesForNothing = 3;

/** The newest events of a room in `(after, upTo]` that the user is shown and wants. */
export async function readTimeline(
  { engine, relations }: HistorySource,
  head: RoomHead,
  filter: Filter,
  { userId, after, upTo, limit, view }: TimelineRequest,
): Promise<Timeline> {
  const { timeline: wanted } = filter.room;
  const isForNothing = wanted.passesNothing || !wanted.passesRoom(head.roomId);
  const isWanted = ({ stored }: VisibleEvent) => !isForNothing && wanted.passes(stored.event);
  const pages = isForNothing || limit === 0 ? pagesForNothing : maxPages;
  const ignored = await engine.ignored.of(userId);
  const stretch: StoredEvent[] = [];
  const chosen: VisibleEvent[] = [];
  let reachedStart = false;
  let reachedGap = false;
  for (let page = 0; page < pages && chosen.length <= limit && !reachedStart && !reachedGap; page++) {
    const size = Math.max(limit + 1 - chosen.length, firstPage << page);
    const before = stretch.at(-1)?.stream ?? upTo + 1;
    const read = await readBackward(engine, head, { after, before, limit: size });
    reachedStart = read.length < size;
    // What comes before such an event was not sent to the client as its neighbour, or is not here at all.
    const gap = read.findIndex(({ followsGap }) => followsGap);
    reachedGap = gap >= 0;
    if (reachedGap) read.splice(gap + 1);
    stretch.push(...read);
    const readable = (view ? await view.displayable(read) : asJoined(read, ignored)).filter(isWanted);
    chosen.push(...(await relations.narrow(readable, wanted.relatedBy, view)));
  }
  const limited = chosen.length > limit || !reachedStart || reachedGap;
  const shown = chosen.slice(0, limit);
  const shownNids = new Set(shown.map(({ stored }) => stored.nid));
  const oldest = limited ? shown.at(-1)?.stored : stretch.at(-1);
  return {
    events: shown.reverse(),
    limited,
    prevBatch: await placeToGoOn(engine, head, oldest, upTo),
    hidesState:
      limited ||
      (after !== undefined && head.completedAt > after) ||
      stretch.some(
        ({ nid, event, resolves }) => resolves || (event.stateKey !== undefined && !shownNids.has(nid)),
      ),
  };
}

async function placeToGoOn(
  engine: RoomReader,
  head: RoomHead,
  oldest: StoredEvent | undefined,
  upTo: number,
): Promise<string> {
  if (oldest) return encodePlace(placeBefore(oldest.event, oldest.stream ?? 0));
  return encodePlace(await engine.events.placeAt(head.roomNid, upTo));
}

function asJoined(events: readonly StoredEvent[], ignored: ReadonlySet<string>): VisibleEvent[] {
  return events
    .filter(
      ({ rejected, softFailed, event }) => !rejected && !softFailed && !isHiddenFromUser(event, ignored),
    )
    .map((stored) => ({ stored, membership: 'join' }));
}

/** Events of `(after, before)`, newest first: from memory when the head holds them all. */
async function readBackward(
  engine: RoomReader,
  head: RoomHead,
  { after, before, limit }: { after: number | undefined; before: number; limit: number },
): Promise<StoredEvent[]> {
  const { recent } = head;
  const oldest = recent[0]?.stream;
  const page: StoredEvent[] = [];
  for (let index = recent.length - 1; index >= 0 && page.length < limit; index--) {
    const stored = recent[index];
    if (stored?.stream === undefined || stored.stream >= before) continue;
    if (after !== undefined && stored.stream <= after) return page;
    page.push(stored);
  }
  const isComplete =
    page.length === limit || (after !== undefined && oldest !== undefined && oldest <= after);
  if (isComplete) return page;
  const range = { before, limit, direction: 'backward' } as const;
  return engine.events.timeline(head.roomNid, after === undefined ? range : { ...range, after });
}
