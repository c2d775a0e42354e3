import { invalidParam, isEventId, MatrixError, notFound, relationOf } from '../protocol/index.ts';
import { type RoomReader, type StoredEvent, visibleContent } from '../room-engine/index.ts';
import { RoomView } from '../rooms/index.ts';
import type { ThreadKey } from './thread.ts';

/**
 * Checks that the root of a thread is visible to the user; each visible event can be a root.
 * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM for an invalid event id
 */
export async function mustSeeThread(
  engine: RoomReader,
  { userId, roomId, rootId }: ThreadKey,
): Promise<void> {
  if (!(await visibleEvent(engine, userId, roomId, rootId))) throw noThreadOrSubscription();
}

/**
 * Returns the stream position of an event that causes an automatic subscription to a thread.
 * @throws MatrixError 400 when the event is not in the thread, or not visible to the user
 */
export async function causeInThread(engine: RoomReader, key: ThreadKey, eventId: string): Promise<number> {
  const cause = await visibleEvent(engine, key.userId, key.roomId, eventId);
  const relation = cause && relationOf(visibleContent(cause));
  if (relation?.relType !== 'm.thread' || relation.eventId !== key.rootId || cause?.stream === undefined) {
    throw new MatrixError(400, 'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD', 'The event is not in this thread');
  }
  return cause.stream;
}

async function visibleEvent(
  engine: RoomReader,
  userId: string,
  roomId: string,
  eventId: string,
): Promise<StoredEvent | undefined> {
  if (!isEventId(eventId)) throw invalidParam('The event id is not valid');
  const head = await engine.heads.get(roomId);
  // Users who may not read the room receive the same error as for a room that does not exist.
  const view = await RoomView.forReading(engine, head, userId).catch((error: unknown) => {
    if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN') return undefined;
    throw error;
  });
  const stored = view && (await engine.events.getById(eventId));
  if (!stored || stored.roomNid !== view.head.roomNid || stored.stream === undefined) return undefined;
  return (await view.visible([stored])).length > 0 ? stored : undefined;
}

/** Returns the error for a thread that the user cannot see or does not follow. */
export const noThreadOrSubscription = () =>
  notFound('There is no such thread, or you are not subscribed to it');
