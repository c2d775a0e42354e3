import { isDeepStrictEqual } from 'node:util';
import {
  type ClientEvent,
  forbidden,
  MatrixError,
  PowerLevels,
  type RoomEvent,
  redactEvent,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import { erasedEvents } from '../../room-engine/index.ts';
import type { Viewer } from '../event-relations.ts';
import type { HistoryReader } from '../history/history-reader.ts';

/**
 * Returns an event as clients see it, with its original content if it is redacted. Only users who may redact in the
 * room receive the original content, and only as long as it is stored.
 * Source: MSC2815, "Proposal to allow room moderators to view redacted event content".
 * @throws MatrixError M_FORBIDDEN for users who may not redact, 404 `FI.MAU.MSC2815_UNREDACTED_CONTENT_DELETED` when the
 * content is not stored or its sender is erased, and the errors of `HistoryReader.event`
 */
export async function unredactedEvent(
  { engine, historyReader }: { engine: RoomReader; historyReader: HistoryReader },
  viewer: Viewer,
  roomId: string,
  eventId: string,
): Promise<ClientEvent> {
  const rendered = await historyReader.event(viewer, roomId, eventId);
  const stored = await engine.events.getById(eventId);
  const head = await engine.heads.get(roomId);
  if (!stored || !head || stored.redactedBy === undefined) return rendered;
  const levels = new PowerLevels(
    await currentStateEvent(engine, head, 'm.room.create'),
    await currentStateEvent(engine, head, 'm.room.power_levels'),
  );
  if (head.membership(viewer.userId) !== 'join' || !levels.reaches(viewer.userId, 'redact')) {
    throw forbidden('You may not see redacted content');
  }
  const { content } = stored.event;
  // The original content of events of erased users is not disclosed.
  const isErased = erasedEvents([stored], await engine.erased.positions()).size > 0;
  if (isErased || isDeepStrictEqual(content, redactEvent(stored.event).event.content)) {
    throw new MatrixError(
      404,
      'FI.MAU.MSC2815_UNREDACTED_CONTENT_DELETED',
      'The redacted content has been deleted',
    );
  }
  return { ...rendered, content };
}

async function currentStateEvent(
  engine: RoomReader,
  head: RoomHead,
  type: string,
): Promise<RoomEvent | undefined> {
  const entry = head.entry(type, '');
  return entry && (await engine.events.get(entry.nid))?.event;
}
