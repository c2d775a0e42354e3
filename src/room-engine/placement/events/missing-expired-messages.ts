import type { Database } from '../../../kernel/database/index.ts';
import type { RoomEvent } from '../../../protocol/index.ts';
import { isExpired, type MessageRetention } from '../../retention/message-retention.ts';
import type { RoomHead } from '../../timeline/room-head.ts';
import { readBackwardExtremities } from '../store.ts';

/**
 * Returns the ids of the events that have expired by the retention policy of the room and that the timeline lacks: they
 * are backward extremities. Reads the backward extremities only when an event has expired.
 */
export async function missingExpiredMessages(
  { database, retention }: { readonly database: Database; readonly retention: MessageRetention },
  head: RoomHead,
  events: readonly { readonly event: RoomEvent }[],
): Promise<ReadonlySet<string>> {
  const expiredBefore = await retention.expiredBefore(head);
  const expired = events
    .filter((candidate) => isExpired(candidate, expiredBefore))
    .map(({ event }) => event.eventId);
  if (expired.length === 0) return new Set();
  return readBackwardExtremities(database.reader(), head.roomNid, expired);
}
