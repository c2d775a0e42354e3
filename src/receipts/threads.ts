import { MAIN_TIMELINE, MAX_THREAD_HOPS, relationOf } from '../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../room-engine/index.ts';

/**
 * Returns the event and the events that it relates to, directly or through others, nearest first, as far as
 * they are known and in the same room. Ends at an event with an `m.thread` relation. Source: client-server API, "Threaded read receipts": at most three
 * relations are followed.
 */
async function relationChain(engine: RoomReader, stored: StoredEvent): Promise<StoredEvent[]> {
  const chain = [stored];
  let relation = relationOf(stored.event.content);
  while (relation && relation.relType !== 'm.thread' && chain.length <= MAX_THREAD_HOPS) {
    const parent = await engine.events.getById(relation.eventId);
    if (!parent || parent.roomNid !== stored.roomNid) break;
    chain.push(parent);
    relation = relationOf(parent.event.content);
  }
  return chain;
}

/**
 * Returns the thread of an event: the id of the thread's root, or `main`. Returns at once for an event that names its
 * thread itself, or has no relation.
 */
export function threadIdOf(engine: RoomReader, stored: StoredEvent): string | Promise<string> {
  const relation = relationOf(stored.event.content);
  if (relation === undefined || relation.relType === 'm.thread') return threadOfLast([stored]);
  return relationChain(engine, stored).then(threadOfLast);
}

/**
 * Whether a receipt for a thread may name the event: the event is in the thread, is its root, or relates to
 * the root. Source: client-server API, `POST /rooms/{roomId}/receipt/{receiptType}/{eventId}`.
 */
export async function belongsToThread(
  engine: RoomReader,
  stored: StoredEvent,
  threadId: string,
): Promise<boolean> {
  const events = await relationChain(engine, stored);
  return threadOfLast(events) === threadId || events.some(({ event }) => event.eventId === threadId);
}

/** Returns the thread of the last event of a relation chain. */
function threadOfLast(events: readonly StoredEvent[]): string {
  const relation = relationOf(events.at(-1)?.event.content ?? {});
  return relation?.relType === 'm.thread' ? relation.eventId : MAIN_TIMELINE;
}
