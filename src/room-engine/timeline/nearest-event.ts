import type { Reader } from '../../kernel/database/index.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import type { EventStore } from './event-store.ts';

/** Number of events that one query reads. */
const pageSize = 50;
/** Maximum number of events that a search reads before it ends without a result. */
const maxScanned = 1_000;

export type TimeDirection = 'forward' | 'backward';

/** An event by its nid and its `origin_server_ts`, in milliseconds since the epoch. */
export interface EventTime {
  readonly ts: number;
  readonly nid: number;
}

/** Finds events of a room by their `origin_server_ts`. */
export class NearestEvents {
  readonly #reader: Reader<RoomTables>;
  readonly #events: EventStore;

  constructor(reader: Reader<RoomTables>, events: EventStore) {
    this.#reader = reader;
    this.#events = events;
  }

  /**
   * Returns the visible event closest to a time: at or after this time (`forward`), at or before this time
   * (`backward`); `undefined` when none of the nearest `maxScanned` events is visible.
   * @param ts milliseconds since the epoch
   * @param filterVisible returns the events that the user or server may see, in the same order
   */
  async find(
    roomNid: number,
    ts: number,
    direction: TimeDirection,
    filterVisible: (events: readonly StoredEvent[]) => Promise<readonly StoredEvent[]>,
  ): Promise<StoredEvent | undefined> {
    let from = { ts, nid: direction === 'forward' ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER };
    for (let scanned = 0; scanned < maxScanned; scanned += pageSize) {
      const rows = await this.#page(roomNid, from, direction);
      const eventsByNid = await this.#events.getMany(rows.map(({ nid }) => nid));
      const ordered = rows.map(({ nid }) => eventsByNid.get(nid)).filter((stored) => stored !== undefined);
      const [first] = await filterVisible(ordered);
      if (first) return first;
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) break;
      from = last;
    }
    return undefined;
  }

  /** Returns the first event at or after a time in milliseconds since the epoch, without a check of its visibility. */
  async firstAfter(roomNid: number, ts: number): Promise<StoredEvent | undefined> {
    const [next] = await this.#page(roomNid, { ts, nid: Number.MIN_SAFE_INTEGER }, 'forward');
    return next && this.#events.get(next.nid);
  }

  #page(roomNid: number, from: EventTime, direction: TimeDirection): Promise<EventTime[]> {
    const [order, comparison] = direction === 'forward' ? (['asc', '>'] as const) : (['desc', '<'] as const);
    return this.#reader
      .selectFrom('event_times')
      .select(['ts', 'nid'])
      .where('room_nid', '=', roomNid)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('ts', 'nid'), comparison, tuple(from.ts, from.nid)))
      .orderBy('ts', order)
      .orderBy('nid', order)
      .limit(pageSize)
      .execute();
  }
}
