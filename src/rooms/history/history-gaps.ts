import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { TimestampQuery } from '../../room-federation/index.ts';

/** Where the parts of a room's history come from that this server does not have. */
export interface RemoteHistory {
  /** Whether there is anybody to ask: a look into memory. */
  canBackfill(head: RoomHead): boolean;
  /** @returns whether there is more to read than before */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean>;
  eventByTime(head: RoomHead, question: TimestampQuery): Promise<StoredEvent | undefined>;
}

/** Fills the gaps that the reading of one page comes upon. A room without other servers costs nothing. */
export class HistoryGaps {
  readonly #engine: RoomReader;
  readonly #older: RemoteHistory;
  readonly #head: RoomHead;
  #asked = false;

  private constructor(engine: RoomReader, older: RemoteHistory, head: RoomHead) {
    this.#engine = engine;
    this.#older = older;
    this.#head = head;
  }

  /** @returns `undefined` where nobody can fill any */
  static of(engine: RoomReader, older: RemoteHistory | undefined, head: RoomHead): HistoryGaps | undefined {
    return older?.canBackfill(head) ? new HistoryGaps(engine, older, head) : undefined;
  }

  /**
   * Fills what is missing between events that were read; once for each page, so that nobody waits for long.
   * @param isEnd whether nothing comes before the events
   * @returns whether they are worth reading again
   */
  async fill(events: readonly StoredEvent[], isEnd: boolean, limit: number): Promise<boolean> {
    if (this.#asked) return false;
    const missing = await this.#missing();
    const named = events.flatMap(({ event }) => event.prevEventIds).filter((id) => missing.has(id));
    const wanted = named.length > 0 || !isEnd ? named : [...missing];
    if (wanted.length === 0) return false;
    this.#asked = true;
    return this.#older.backfill(this.#head.roomId, [...new Set(wanted)], limit);
  }

  /** Whether anything is missing in the room, so that there may be more to read later. */
  async remain(): Promise<boolean> {
    return (await this.#missing()).size > 0;
  }

  async #missing(): Promise<ReadonlySet<string>> {
    return new Set(await this.#engine.backwardExtremities(this.#head.roomId));
  }
}
