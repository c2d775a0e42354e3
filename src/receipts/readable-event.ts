import { forbidden, invalidParam, isEventId } from '../protocol/index.ts';
import type { RoomReader, StoredEvent } from '../room-engine/index.ts';
import { RoomView } from '../rooms/index.ts';

/**
 * Returns the event that a receipt names; `undefined` when the timeline of the room does not have it. That is not an
 * error: the event may have been purged, and clients cannot know that.
 * @throws MatrixError M_INVALID_PARAM for an invalid event id, M_FORBIDDEN when the user is not in the room or may not
 * see the event
 */
export async function readableEvent(
  engine: RoomReader,
  userId: string,
  roomId: string,
  eventId: string,
): Promise<(StoredEvent & { readonly stream: number }) | undefined> {
  if (!isEventId(eventId)) throw invalidParam('The event id is not valid');
  const head = await engine.heads.get(roomId);
  if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
  const stored = await engine.events.getById(eventId);
  if (!stored || stored.roomNid !== head.roomNid || !isOnTimeline(stored)) return undefined;
  const membership = (await engine.userRooms.of(userId)).get(roomId);
  const sentWhileJoined = membership?.membership === 'join' && stored.stream >= membership.stream;
  if (!sentWhileJoined) {
    const view = await RoomView.open(engine, head, userId);
    if ((await view.visible([stored])).length === 0) throw forbidden('You may not see this event');
  }
  return stored;
}

function isOnTimeline(stored: StoredEvent): stored is StoredEvent & { readonly stream: number } {
  return stored.stream !== undefined && !stored.rejected && !stored.softFailed;
}
