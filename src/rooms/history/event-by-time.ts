import type { Database, Reader } from '../../kernel/database/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import { RoomView } from './room-view.ts';

/** Events that are looked at together, and altogether, until one is found that the user may see. */
const [pageSize, mostScanned] = [50, 1_000];

/** Finds events by the time at which their senders say they were sent. */
export class EventByTime {
  readonly #engine: RoomEngine;
  readonly #reader: Reader<RoomTables>;

  constructor(engine: RoomEngine, database: Database) {
    this.#engine = engine;
    this.#reader = database.reader<RoomTables>();
  }

  /**
   * The event closest to a time, at it or after it (`forward`), or at it or before it.
   * Source: client-server API, `GET /rooms/{roomId}/timestamp_to_event`.
   * @param ts milliseconds since the epoch
   * @throws MatrixError M_NOT_FOUND when there is none that the user may see, M_FORBIDDEN
   */
  async find(
    userId: string,
    roomId: string,
    ts: number,
    direction: 'forward' | 'backward',
  ): Promise<StoredEvent> {
    const view = await RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), userId);
    return this.nearest(view.head.roomNid, ts, direction, async (events) =>
      (await view.shown(events)).map(({ stored }) => stored),
    );
  }

  /**
   * The same for anybody. @param choose those of the events that they may see, in the same order
   * @throws MatrixError M_NOT_FOUND
   */
  async nearest(
    roomNid: number,
    ts: number,
    direction: 'forward' | 'backward',
    choose: (events: readonly StoredEvent[]) => Promise<readonly StoredEvent[]>,
  ): Promise<StoredEvent> {
    let from = { ts, nid: direction === 'forward' ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER };
    for (let scanned = 0; scanned < mostScanned; scanned += pageSize) {
      const rows = await this.#page(roomNid, from, direction);
      const found = await this.#engine.events.getMany(rows.map(({ nid }) => nid));
      const ordered = rows.map(({ nid }) => found.get(nid)).filter((stored) => stored !== undefined);
      const [first] = await choose(ordered);
      if (first) return first;
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) break;
      from = last;
    }
    throw notFound('There is no event that is close to this time');
  }

  #page(
    roomNid: number,
    from: { ts: number; nid: number },
    direction: 'forward' | 'backward',
  ): Promise<{ ts: number; nid: number }[]> {
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
