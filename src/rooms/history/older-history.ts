import type { RoomHead, StoredEvent } from '../../room-engine/index.ts';
import type { TimestampQuery } from '../../room-federation/index.ts';

/** Where the parts of a room's history come from that this server does not have. */
export interface OlderHistory {
  /** Whether there is anybody to ask: a look into memory. */
  canBackfill(head: RoomHead): boolean;
  /** @returns whether there is more to read than before */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean>;
  eventByTime(head: RoomHead, question: TimestampQuery): Promise<StoredEvent | undefined>;
}
