import type { Filter } from '../../filters/index.ts';
import type { RoomEngine, RoomHead, StoredEvent } from '../../rooms/index.ts';
import { encodePlace, placeBefore, RoomView, type VisibleEvent } from '../../rooms/index.ts';

/** The timeline of one room in a sync. */
export interface Timeline {
  readonly events: readonly VisibleEvent[];
  /** Events between the last sync and the first of these were left out. */
  readonly limited: boolean;
  /** Where to go on backwards. */
  readonly prevBatch: string;
  /** The first event of the stretch that `events` were chosen from, whether it was chosen or not. */
  readonly first: StoredEvent | undefined;
  /** All events of that stretch that are part of the room's state. */
  readonly stateEvents: readonly StoredEvent[];
}

export interface TimelineRequest {
  /** `undefined`: from the beginning, as far as the limit allows. */
  readonly after: number | undefined;
  readonly upTo: number;
  /** Most events that the timeline may hold. */
  readonly limit: number;
  /** The user was in the room all the time since `after`, and so may see everything. */
  readonly wasJoinedThroughout: boolean;
}

/** Pages that are read at the most while events are hidden from the user or by the filter. */
const mostPages = 5;

/** The newest events of a room in `(after, upTo]` that the user may see and wants. */
export async function readTimeline(
  engine: RoomEngine,
  head: RoomHead,
  userId: string,
  filter: Filter,
  { after, upTo, limit, wasJoinedThroughout }: TimelineRequest,
): Promise<Timeline> {
  const wanted = filter.room.timeline.passesRoom(head.roomId);
  const stretch: StoredEvent[] = [];
  const events: VisibleEvent[] = [];
  const view = wasJoinedThroughout ? undefined : await RoomView.open(engine, head, userId);
  let before = upTo + 1;
  let reachedStart = false;
  for (let page = 0; page < mostPages && events.length <= limit && !reachedStart; page++) {
    const size = Math.max(limit + 1 - events.length, 10);
    const read = await readBackward(engine, head, after, before, size);
    reachedStart = read.length < size;
    const visible = view ? await view.filter(read) : asJoined(read);
    const chosen = new Set<VisibleEvent>();
    for (const one of visible) {
      if (wanted && filter.room.timeline.passes(one.stored.event) && events.length + chosen.size <= limit)
        chosen.add(one);
    }
    events.push(...chosen);
    stretch.push(...read);
    before = read.at(-1)?.stream ?? before;
  }
  const limited = events.length > limit || !reachedStart;
  const kept = events.slice(0, limit);
  const oldest = limited ? (kept.at(-1)?.stored ?? stretch.at(0)) : stretch.at(-1);
  const cut = oldest ? stretch.slice(0, stretch.indexOf(oldest) + 1) : [];
  return {
    events: kept.reverse(),
    limited,
    prevBatch: await previousBatch(engine, head, oldest, upTo),
    first: oldest,
    stateEvents: cut.filter(({ event }) => event.stateKey !== undefined).reverse(),
  };
}

async function previousBatch(
  engine: RoomEngine,
  head: RoomHead,
  oldest: StoredEvent | undefined,
  upTo: number,
): Promise<string> {
  if (oldest) return encodePlace(placeBefore(oldest.event, oldest.stream ?? 0));
  return encodePlace(await engine.events.placeAt(head.roomNid, upTo));
}

function asJoined(events: readonly StoredEvent[]): VisibleEvent[] {
  return events
    .filter(({ rejected, softFailed }) => !rejected && !softFailed)
    .map((stored) => ({ stored, membership: 'join' }));
}

/** Events of `(after, before)`, newest first: from memory when the head holds them all. */
async function readBackward(
  engine: RoomEngine,
  head: RoomHead,
  after: number | undefined,
  before: number,
  limit: number,
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
