import type { Database, Reader } from '../../kernel/database/index.ts';
import { notFound } from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomTables } from '../tables.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import type { OlderHistory } from './older-history.ts';
import { RoomView } from './room-view.ts';

/** Events that are looked at together, and altogether, until one is found that the user may see. */
const [pageSize, maxScanned] = [50, 1_000];

/** Finds events by the time at which their senders say they were sent. */
export class EventByTime {
  readonly #engine: RoomEngine;
  readonly #reader: Reader<RoomTables>;
  readonly #older: OlderHistory | undefined;

  /** @param older knows of events that are missing here; absent: nobody does */
  constructor(engine: RoomEngine, database: Database, older?: OlderHistory) {
    this.#older = older;
    this.#engine = engine;
    this.#reader = database.reader<RoomTables>();
  }

  /**
   * The event closest to a time, at it or after it (`forward`), or at it or before it. Where the history has a gap at
   * that time, other servers are asked for an event that is closer, which takes ten seconds at the most.
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
    const shown = async (events: readonly StoredEvent[]) =>
      (await view.shown(events)).map(({ stored }) => stored);
    const found = await this.#nearest(view.head.roomNid, ts, direction, shown);
    const closer = await this.#closer(view.head, ts, direction, found);
    const [event] = closer ? await shown([closer]) : [];
    return event ?? found ?? noneIsClose();
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
    return (await this.#nearest(roomNid, ts, direction, choose)) ?? noneIsClose();
  }

  async #nearest(
    roomNid: number,
    ts: number,
    direction: 'forward' | 'backward',
    choose: (events: readonly StoredEvent[]) => Promise<readonly StoredEvent[]>,
  ): Promise<StoredEvent | undefined> {
    let from = { ts, nid: direction === 'forward' ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER };
    for (let scanned = 0; scanned < maxScanned; scanned += pageSize) {
      const rows = await this.#page(roomNid, from, direction);
      const found = await this.#engine.events.getMany(rows.map(({ nid }) => nid));
      const ordered = rows.map(({ nid }) => found.get(nid)).filter((stored) => stored !== undefined);
      const [first] = await choose(ordered);
      if (first) return first;
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) break;
      from = last;
    }
    return undefined;
  }

  /** An event that other servers have and that is closer than what was found here. */
  async #closer(
    head: RoomHead,
    ts: number,
    direction: 'forward' | 'backward',
    found: StoredEvent | undefined,
  ): Promise<StoredEvent | undefined> {
    if (!this.#older?.canBackfill(head) || !(await this.#isBesideGap(head, ts, found))) return undefined;
    return this.#older.eventByTime(head, { ts, direction, closest: found?.event.originServerTs });
  }

  /** Whether something may be missing between the time and what was found: before the first event after that time. */
  async #isBesideGap(head: RoomHead, ts: number, found: StoredEvent | undefined): Promise<boolean> {
    const missing = new Set(await this.#engine.placement.backwardExtremities(head.roomId));
    if (missing.size === 0 || !found) return missing.size > 0;
    const [next] = await this.#page(head.roomNid, { ts, nid: Number.MIN_SAFE_INTEGER }, 'forward');
    const after = next && (await this.#engine.events.get(next.nid));
    return after?.event.prevEventIds.some((id) => missing.has(id)) === true;
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

function noneIsClose(): never {
  throw notFound('There is no event that is close to this time');
}
