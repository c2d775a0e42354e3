import { Type } from 'typebox';
import { type Requester, type Route, route } from '../../kernel/http/index.ts';
import {
  isEventId,
  MatrixError,
  notFound,
  PowerLevels,
  type RoomEvent,
  serverOfUser,
} from '../../protocol/index.ts';
import type { RoomHead, StoredEvent } from '../../room-engine/index.ts';
import type { Rooms, Sender } from '../../rooms/index.ts';
import { text } from '../response-fields.ts';
import type { KnownRooms } from './known-rooms.ts';

export interface RedactionRouteDeps {
  readonly rooms: Pick<Rooms, 'engine' | 'sending'>;
  readonly knownRooms: KnownRooms;
  readonly serverName: string;
}

/**
 * Redacts one event, unless it is redacted already: then the response names the earlier redaction. The sender of the
 * redaction is the first of these users who may redact the event: the administrator who sends the request, the local
 * sender of the event, the most powerful local member of the room.
 */
export function redactionRoute({ rooms, knownRooms, serverName }: RedactionRouteDeps): Route {
  const { engine, sending } = rooms;
  return route(
    {
      operationId: 'redactRoomEvent',
      method: 'POST',
      path: '/_server/admin/v1/rooms/:roomId/redact/:eventId',
      auth: 'admin',
      body: Type.Object({ reason: Type.Optional(Type.String()) }),
      response: Type.Object({ event_id: text, sender: text }),
    },
    async ({ params: { roomId, eventId }, body: { reason }, requester }) => {
      const head = await knownRooms.get(roomId);
      const target = isEventId(eventId) && !eventId.includes('\0') && (await engine.events.getById(eventId));
      if (!target || target.event.roomId !== roomId) throw notFound('Event not found');
      const earlierRedaction =
        target.redactedBy === undefined ? undefined : await engine.events.get(target.redactedBy);
      if (earlierRedaction)
        return { event_id: earlierRedaction.event.eventId, sender: earlierRedaction.event.sender };
      const levels = new PowerLevels(
        await currentOf(rooms, head, 'm.room.create'),
        await currentOf(rooms, head, 'm.room.power_levels'),
      );
      const sender = senderOf({ head, levels, target, requester, serverName });
      const content = reason === undefined ? {} : { reason };
      return { event_id: await sending.redact(sender, roomId, eventId, content), sender: sender.userId };
    },
  );
}

/** The inputs for the choice of the sender of a redaction. */
interface SenderChoice {
  readonly head: RoomHead;
  readonly levels: PowerLevels;
  readonly target: StoredEvent;
  readonly requester: Requester;
  readonly serverName: string;
}

/** @throws MatrixError 400 M_UNKNOWN when no local member of the room may redact the event */
function senderOf({ head, levels, target: { event }, requester, serverName }: SenderChoice): Sender {
  const mayRedact = (userId: string) =>
    head.membership(userId) === 'join' && (userId === event.sender || levels.reaches(userId, 'redact'));
  if (mayRedact(requester.userId)) return requester;
  let senderId: string | undefined;
  if (serverOfUser(event.sender) === serverName && mayRedact(event.sender)) senderId = event.sender;
  else {
    for (const userId of head.members.keys()) {
      if (serverOfUser(userId) !== serverName || !mayRedact(userId)) continue;
      if (senderId === undefined || levels.ofUser(userId) > levels.ofUser(senderId)) senderId = userId;
    }
  }
  if (senderId === undefined) {
    throw new MatrixError(400, 'M_UNKNOWN', 'No local user in the room may redact this event');
  }
  return { userId: senderId, deviceId: undefined, isServerTask: true };
}

async function currentOf(
  { engine }: Pick<Rooms, 'engine'>,
  head: RoomHead,
  type: string,
): Promise<RoomEvent | undefined> {
  const entry = head.entry(type, '');
  return entry && (await engine.events.get(entry.nid))?.event;
}
