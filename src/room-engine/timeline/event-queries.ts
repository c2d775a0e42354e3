import type { Reader } from '../../kernel/database/index.ts';
import type { RoomTables } from '../tables.ts';
import { type EventRow, eventColumns } from './event-row.ts';
import type { HistoryPlace } from './stream-places.ts';

/** The bounds and the order of a page of a room's timeline. */
export interface TimelineRange {
  /** Exclusive bounds on the stream. */
  readonly after?: number;
  readonly before?: number;
  /** Inclusive upper bound on the stream. */
  readonly upTo?: number;
  readonly limit: number;
  readonly direction: 'forward' | 'backward';
}

/** The bounds and the order of a page of a room's history. */
export interface HistoryRange {
  /** Bounds of the stream positions: above `after`, up to `upTo`. */
  readonly after?: number | undefined;
  readonly upTo?: number | undefined;
  readonly limit: number;
  readonly direction: 'forward' | 'backward';
}

/** Reads events by nid; events that are not stored are absent. */
export function readEvents(reader: Reader<RoomTables>, nids: readonly number[]): Promise<EventRow[]> {
  return select(reader).where('events.nid', 'in', nids).execute();
}

/** Reads events by event id; events that are not stored are absent. */
export function readEventsById(reader: Reader<RoomTables>, eventIds: readonly string[]): Promise<EventRow[]> {
  return select(reader).where('events.event_id', 'in', eventIds).execute();
}

/** Returns which of these event ids belong to stored events. */
export async function readStoredIds(
  reader: Reader<RoomTables>,
  eventIds: readonly string[],
): Promise<string[]> {
  const rows = await reader
    .selectFrom('events')
    .select('event_id')
    .where('event_id', 'in', eventIds)
    .execute();
  return rows.map(({ event_id: eventId }) => eventId);
}

/** Returns the event ids of events by nid; events that are not stored are absent. */
export async function readIdsByNid(
  reader: Reader<RoomTables>,
  nids: readonly number[],
): Promise<{ nid: number; event_id: string }[]> {
  return reader.selectFrom('events').select(['nid', 'event_id']).where('nid', 'in', nids).execute();
}

/** Reads a page of a room's timeline in stream order, without backfilled events. */
export function readTimeline(
  reader: Reader<RoomTables>,
  roomNid: number,
  range: TimelineRange,
): Promise<EventRow[]> {
  return timelineQuery(reader, roomNid, range).execute();
}

/**
 * Returns the query of `readTimeline`. It has one lower bound on the stream: with two lower bounds, SQLite would use
 * only the first to limit the scan of the index.
 */
export function timelineQuery(
  reader: Reader<RoomTables>,
  roomNid: number,
  { after, before, upTo, limit, direction }: TimelineRange,
) {
  let query = select(reader)
    .where('events.room_nid', '=', roomNid)
    .where('events.stream', '>', Math.max(0, after ?? 0))
    .orderBy('events.stream', direction === 'backward' ? 'desc' : 'asc')
    .limit(limit);
  if (before !== undefined) query = query.where('events.stream', '<', before);
  if (upTo !== undefined) query = query.where('events.stream', '<=', upTo);
  return query;
}

/**
 * Reads a page of a room's history in topological order: by depth, then by position on the stream.
 * @param from where the page begins: just after the event with this depth and position, so that a backward page begins
 * with this event; absent: at the end (backward) or at the beginning (forward) of the history
 */
export function readHistory(
  reader: Reader<RoomTables>,
  roomNid: number,
  from: HistoryPlace | undefined,
  range: HistoryRange,
): Promise<EventRow[]> {
  return historyQuery(reader, roomNid, from, range).execute();
}

/**
 * The places after the newest and before the oldest event. Without a condition on the depth, SQLite chooses
 * the index by stream for a page of a sync, reads the whole room and sorts it.
 */
const historyEnds = {
  backward: { depth: Number.MAX_SAFE_INTEGER, stream: Number.MAX_SAFE_INTEGER },
  forward: { depth: Number.MIN_SAFE_INTEGER, stream: Number.MIN_SAFE_INTEGER },
} as const;

/**
 * Returns the query of `readHistory`. It reads in the order of an index, so that a page costs the same in a room of
 * any size.
 */
export function historyQuery(
  reader: Reader<RoomTables>,
  roomNid: number,
  from: HistoryPlace | undefined,
  { after, upTo, limit, direction }: HistoryRange,
) {
  const order = direction === 'backward' ? 'desc' : 'asc';
  const comparison = direction === 'backward' ? '<=' : '>';
  const place = from ?? historyEnds[direction];
  let query = select(reader)
    .where('events.room_nid', '=', roomNid)
    .where('events.stream', 'is not', null)
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('events.depth', 'events.stream'), comparison, tuple(place.depth, place.stream)),
    )
    .orderBy('events.depth', order)
    .orderBy('events.stream', order)
    .limit(limit);
  if (after !== undefined) query = query.where('events.stream', '>', after);
  if (upTo !== undefined) query = query.where('events.stream', '<=', upTo);
  return query;
}

/** Reads events that were placed on timelines when they were stored, in `(after, upTo]` of the stream. */
export function readEventsPlacedOnArrival(
  reader: Reader<RoomTables>,
  after: number,
  upTo: number,
  limit: number,
): Promise<EventRow[]> {
  return select(reader)
    .where('events.nid', '>', after)
    .where('events.nid', '<=', upTo)
    .whereRef('events.stream', '=', 'events.nid')
    .orderBy('events.nid')
    .limit(limit)
    .execute();
}

/**
 * Reads events that were placed on timelines in `(after, upTo]` of the stream, later than they were stored.
 * @param backfilled whether backfilled events are included
 */
export function readEventsPlacedLater(
  reader: Reader<RoomTables>,
  after: number,
  upTo: number,
  limit: number,
  { backfilled }: { backfilled: boolean },
): Promise<(EventRow & { position: number })[]> {
  const query = select(reader)
    .innerJoin('event_places', 'event_places.nid', 'events.nid')
    .select('event_places.position')
    .where('event_places.position', '>', after)
    .where('event_places.position', '<=', upTo)
    .orderBy('event_places.position')
    .limit(limit);
  return (backfilled ? query : query.where('events.stream', '>', 0)).execute();
}

function select(reader: Reader<RoomTables>) {
  return reader
    .selectFrom('events')
    .innerJoin('rooms', 'rooms.room_nid', 'events.room_nid')
    .select(eventColumns);
}
