import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { TimestampQuery } from '../../room-federation/index.ts';

/** Fetches history that this server has not stored from other servers. */
export interface RemoteHistory {
  /** Whether there is a server to ask. Reads memory only. */
  canBackfill(head: RoomHead): boolean;
  /** Backfills before the events. @returns whether events were added */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean>;
  eventByTime(head: RoomHead, query: TimestampQuery): Promise<StoredEvent | undefined>;
}

/** Backfills the gaps that reading one page finds. Costs nothing in a room without remote servers. */
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

  /** @returns `undefined` when there is no server to backfill from */
  static of(
    engine: RoomReader,
    remoteHistory: RemoteHistory | undefined,
    head: RoomHead,
  ): HistoryGaps | undefined {
    return remoteHistory?.canBackfill(head) ? new HistoryGaps(engine, remoteHistory, head) : undefined;
  }

  /**
   * Backfills the events that are missing between the events that were read; at most once for each page, to
   * bound the response time.
   * @param isEnd whether no stored event precedes them
   * @returns whether the page should be read again
   */
  async fill(events: readonly StoredEvent[], isEnd: boolean, limit: number): Promise<boolean> {
    if (this.#hasBackfilled) return false;
    const missing = await this.#missingIds();
    const named = events.flatMap(({ event }) => event.prevEventIds).filter((id) => missing.has(id));
    const wanted = named.length > 0 || !isEnd ? named : [...missing];
    if (wanted.length === 0) return false;
    this.#hasBackfilled = true;
    return this.#remoteHistory.backfill(this.#head.roomId, [...new Set(wanted)], limit);
  }

  /** Whether the room has gaps, so that a later request may read more. */
  async remain(): Promise<boolean> {
    return (await this.#missingIds()).size > 0;
  }

  async #missingIds(): Promise<ReadonlySet<string>> {
    return new Set(await this.#engine.backwardExtremities(this.#head.roomId));
  }
}
