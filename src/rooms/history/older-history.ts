import type { TimeQuestion } from '../incoming/history/remote-event-by-time.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomHead } from '../timeline/room-head.ts';

/** Where the parts of a room's history come from that this server does not have. */
export interface OlderHistory {
  /** Whether there is anybody to ask: a look into memory. */
  canBackfill(head: RoomHead): boolean;
  /** @returns whether there is more to read than before */
  backfill(roomId: string, eventIds: readonly string[], limit: number): Promise<boolean>;
  eventByTime(head: RoomHead, question: TimeQuestion): Promise<StoredEvent | undefined>;
}
