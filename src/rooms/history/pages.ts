import type { RoomEventFilter } from '../../filters/index.ts';
import type { RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { EventRelations } from '../event-relations.ts';
import { HistoryGaps, type RemoteHistory } from './history-gaps.ts';
import { placeBefore, type SplitPlace, type StreamPlace } from './history-token.ts';
import type { RoomView, VisibleEvent } from './room-view.ts';

export type Direction = 'forward' | 'backward';

export interface PageRequest {
  readonly direction: Direction;
  readonly limit: number;
  readonly filter: RoomEventFilter;
  /** The place to stop at. */
  readonly to?: SplitPlace | StreamPlace | undefined;
  /** Backfills gaps of a page that is read backward; absent: gaps stay. */
  readonly remoteHistory?: RemoteHistory | undefined;
}

export interface Page {
  readonly events: readonly VisibleEvent[];
  /** The place to continue from; `undefined` at the end of the history, and if no event was selected up to `to`. */
  readonly next: SplitPlace | undefined;
}

/** The room engine and the relations that pages are read from. */
export interface HistorySource {
  readonly engine: RoomReader;
  readonly relations: EventRelations;
}

/** Maximum number of events that one request scans; then the page is shorter and has a token to continue. */
const maxScanned = 1_000;

/**
 * Reads events that the user can see and the filter passes, from `start` until the page is full, the end of
 * the history or `to` is reached, or `maxScanned` events were read.
 */
export async function readPage(
  { engine, relations }: HistorySource,
  view: RoomView,
  start: SplitPlace,
  { direction, limit, filter, to, remoteHistory }: PageRequest,
): Promise<Page> {
  if (!filter.passesRoom(view.head.roomId)) return { events: [], next: undefined };
  const events: VisibleEvent[] = [];
  const gaps = direction === 'backward' ? HistoryGaps.forRoom(engine, remoteHistory, view.head) : undefined;
  const { split } = start;
  const [toPlace, toPosition] = to && 'position' in to ? [undefined, to.position] : [to, undefined];
  const [after, upTo] = direction === 'backward' ? [toPosition, split] : [split, toPosition];
  const bounds = { after, upTo, direction };
  let place = start;
  for (let scanned = 0; scanned < maxScanned && events.length < limit; ) {
    const size = Math.min(Math.max(limit - events.length, 20), maxScanned - scanned);
    const read = await engine.events.history(view.head.roomNid, place, { limit: size, ...bounds });
    const reachesStart = read.length < size && toPosition === undefined;
    if (await gaps?.fill(read, reachesStart, limit)) continue;
    scanned += read.length;
    const selected = await relations.filterByRelations(await view.displayable(read), filter.relatedBy, view);
    const visible = new Map(selected.map((visibleEvent) => [visibleEvent.stored.nid, visibleEvent]));
    for (const stored of read) {
      if (toPlace && isBeyond(stored, toPlace, direction))
        return { events, next: events.length > 0 ? toPlace : undefined };
      if (events.length === limit) return { events, next: place };
      place = { ...placeAfter(stored, direction), split };
      const visibleEvent = visible.get(stored.nid);
      if (visibleEvent && filter.passes(stored.event)) events.push(visibleEvent);
    }
    if (read.length < size) {
      const hasMore = place !== start && reachesStart && (await gaps?.remain());
      return { events, next: hasMore ? place : undefined };
    }
  }
  return { events, next: place };
}

/** Returns the place directly after an event: reading continues there. */
export function placeAfter({ event, stream = 0 }: StoredEvent, direction: Direction): SplitPlace {
  return direction === 'forward' ? { depth: event.depth, stream } : placeBefore(event, stream);
}

/** Whether an event is beyond a place, in the direction of reading. */
function isBeyond({ event, stream = 0 }: StoredEvent, to: SplitPlace, direction: Direction): boolean {
  const isAfter = event.depth > to.depth || (event.depth === to.depth && stream > to.stream);
  return direction === 'forward' ? isAfter : !isAfter;
}
