import { invalidParam, isEventId, MatrixError, notFound, relationOf } from '../protocol/index.ts';
import { type RoomReader, type StoredEvent, visibleContent } from '../room-engine/index.ts';
import { RoomView } from '../rooms/index.ts';
import type { ThreadKey } from './thread.ts';

/**
 * Makes sure that there is a thread that the user may see: any event that they may see can have one.
 * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM for what is no event id
 */
export async function mustSeeThread(
  engine: RoomReader,
  { userId, roomId, rootId }: ThreadKey,
): Promise<void> {
  if (!(await visibleEvent(engine, userId, roomId, rootId))) throw noThread();
}

/**
 * The place on the stream of an event that is the reason to follow a thread.
 * @throws MatrixError 400 when it is not in the thread, or the user may not see it
 */
export async function causeInThread(engine: RoomReader, key: ThreadKey, eventId: string): Promise<number> {
  const cause = await visibleEvent(engine, key.userId, key.roomId, eventId);
  const relation = cause && relationOf(visibleContent(cause));
  if (relation?.relType !== 'm.thread' || relation.eventId !== key.rootId || cause?.stream === undefined) {
    throw new MatrixError(400, 'IO.ELEMENT.MSC4306.M_NOT_IN_THREAD', 'That event is not in this thread');
  }
  return cause.stream;
}

async function visibleEvent(
  engine: RoomReader,
  userId: string,
  roomId: string,
  eventId: string,
): Promise<StoredEvent | undefined> {
  if (!isEventId(eventId)) throw invalidParam('This is not an event id');
  const head = await engine.heads.get(roomId);
  // Who may not read the room is not told either whether there is one.
  const view = await RoomView.forReading(engine, head, userId).catch((error: unknown) => {
    if (error instanceof MatrixError && error.errcode === 'M_FORBIDDEN') return undefined;
    throw error;
  });
  const stored = view && (await engine.events.getById(eventId));
  if (!stored || stored.roomNid !== view.head.roomNid || stored.stream === undefined) return undefined;
  return (await view.visible([stored])).length > 0 ? stored : undefined;
}

export const noThread = () => notFound('There is no such thread, or you do not follow it');
