import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { TimestampQuery } from '../../room-federation/index.ts';

/** Fetches from other servers the history that this server has not stored. */
export interface RemoteHistory {
  /** Whether there is a server that could receive requests. Reads memory only. */
  canBackfill(head: RoomHead): boolean;
  /** Backfills these missing events and events before them. @returns whether events were added */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean>;
  /**
   * Finds an event on other servers that is closer to a timestamp than the stored events; `undefined` without such an
   * event.
   */
  eventByTime(head: RoomHead, query: TimestampQuery): Promise<StoredEvent | undefined>;
}

/**
 * Backfills the gaps in the history that are found while a page is read. Needs no query in a room without remote
 * servers.
 */
export class HistoryGaps {
  readonly #engine: RoomReader;
  readonly #remoteHistory: RemoteHistory;
  readonly #head: RoomHead;
  #hasBackfilled = false;

  private constructor(engine: RoomReader, remoteHistory: RemoteHistory, head: RoomHead) {
    this.#engine = engine;
    this.#remoteHistory = remoteHistory;
    this.#head = head;
  }

  /** Opens the gaps of a room. @returns `undefined` when there is no server to backfill from */
  static forRoom(
    engine: RoomReader,
    remoteHistory: RemoteHistory | undefined,
    head: RoomHead,
  ): HistoryGaps | undefined {
    return remoteHistory?.canBackfill(head) ? new HistoryGaps(engine, remoteHistory, head) : undefined;
  }

  /**
   * Backfills the missing `prev_events` of the events that were read. If none are missing and the events reach the
   * beginning of the stored history, backfills all missing events of the room. Runs at most once for each page, to
   * bound the response time.
   * @param reachesStart whether `events` reach the beginning of the stored history
   * @returns whether the page should be read again
   */
  async fill(events: readonly StoredEvent[], reachesStart: boolean, limit: number): Promise<boolean> {
    if (this.#hasBackfilled) return false;
    const missing = await this.#missingIds();
    const missingPrevEvents = events
      .flatMap(({ event }) => event.prevEventIds)
      .filter((id) => missing.has(id));
    const idsToBackfill = missingPrevEvents.length > 0 || !reachesStart ? missingPrevEvents : [...missing];
    if (idsToBackfill.length === 0) return false;
    this.#hasBackfilled = true;
    return this.#remoteHistory.backfill(this.#head.roomId, [...new Set(idsToBackfill)], limit);
  }

  /** Whether the room has gaps, so that a later request may read more. */
  async remain(): Promise<boolean> {
    return (await this.#missingIds()).size > 0;
  }

  async #missingIds(): Promise<ReadonlySet<string>> {
    return new Set(await this.#engine.backwardExtremities(this.#head.roomId));
  }
}
