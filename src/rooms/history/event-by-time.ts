import { notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { RemoteHistory } from './history-gaps.ts';
import { RoomView } from './room-view.ts';

/** Finds events by `origin_server_ts`. */
export class EventByTime {
  readonly #engine: RoomReader;
  readonly #remoteHistory: RemoteHistory | undefined;

  /** @param remoteHistory finds events that this server has not stored; absent: only stored events are found */
  constructor(engine: RoomReader, remoteHistory?: RemoteHistory) {
    this.#remoteHistory = remoteHistory;
    this.#engine = engine;
  }

  /**
   * Returns the event closest to a time: at or after it (`forward`), or at or before it (`backward`). Where the stored
   * history has a gap at that time, requests a closer event from other servers, for at most ten seconds. Source:
   * client-server API, `GET /rooms/{roomId}/timestamp_to_event`.
   * @param ts milliseconds since the epoch
   * @throws MatrixError M_NOT_FOUND when the user can see no event on this side of the time, M_FORBIDDEN when they may
   * not read the room
   */
  async find(
    viewer: Viewer,
    roomId: string,
    ts: number,
    direction: 'forward' | 'backward',
  ): Promise<StoredEvent> {
    const view = await RoomView.forViewer(this.#engine, roomId, viewer);
    const filterVisible = async (events: readonly StoredEvent[]) =>
      (await view.displayable(events)).map(({ stored }) => stored);
    const stored = await this.#engine.nearestEvents.find(view.head.roomNid, ts, direction, filterVisible);
    const closer = await this.#closer(view.head, ts, direction, stored);
    const [event] = closer ? await filterVisible([closer]) : [];
    return event ?? stored ?? throwNotFound();
  }

  /**
   * Requests from other servers an event that is closer to the time than the stored event. Returns `undefined` without
   * a request where the stored history has no gap at the time.
   */
  async #closer(
    head: RoomHead,
    ts: number,
    direction: 'forward' | 'backward',
    stored: StoredEvent | undefined,
  ): Promise<StoredEvent | undefined> {
    if (!this.#remoteHistory?.canBackfill(head) || !(await this.#hasGapAt(head, ts, stored)))
      return undefined;
    return this.#remoteHistory.eventByTime(head, {
      ts,
      direction,
      closestKnownTs: stored?.event.originServerTs,
    });
  }

  /**
   * Whether events may be missing at the time: the first stored event after it has prev events that are not stored.
   * Without a stored event that the user may see, any gap in the history counts.
   */
  async #hasGapAt(head: RoomHead, ts: number, stored: StoredEvent | undefined): Promise<boolean> {
    const missing = new Set(await this.#engine.backwardExtremities(head.roomId));
    if (missing.size === 0 || !stored) return missing.size > 0;
    const after = await this.#engine.nearestEvents.firstAfter(head.roomNid, ts);
    return after?.event.prevEventIds.some((id) => missing.has(id)) === true;
  }
}

function throwNotFound(): never {
  throw notFound('No event found for this timestamp');
}
