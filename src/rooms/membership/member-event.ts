import { type JsonObject, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import type { RequestingUser } from '../limits.ts';

/** Options of a membership change. */
export interface MembershipRequest {
  /** The user who makes the request; absent when the server acts by itself. */
  readonly requester?: RequestingUser;
  /**
   * Content of the event besides the membership and the profile, for instance `reason`; may also set a profile for
   * the room.
   */
  readonly extraContent?: JsonObject;
  /** Servers that may be in the room, for a room that this server is not in. */
  readonly via?: readonly string[];
  /** Milliseconds since the epoch, for events that this server creates; by default now. */
  readonly originServerTs?: number | undefined;
}

/** Returns the head of a room. @throws MatrixError M_NOT_FOUND for an unknown room */
export async function knownHead({ heads }: RoomWriter, roomId: string): Promise<RoomHead> {
  const head = await heads.get(roomId);
  if (!head) throw notFound('Unknown room');
  return head;
}

/**
 * Returns the current membership event of a user once it is on disk: it may have just been sent, and callers need a
 * stored event.
 */
export async function currentMember(
  { events, timeline }: RoomWriter,
  head: RoomHead,
  userId: string,
): Promise<StoredEvent> {
  const entry = head.entry('m.room.member', userId);
  const stored = entry && (await events.get(entry.nid));
  if (!stored) throw new Error('the membership event is missing');
  await timeline.durable(stored);
  return stored;
}

/** Sends a membership event. @param originServerTs milliseconds since the epoch, by default now */
export function sendMember(
  { timeline }: RoomWriter,
  sender: string,
  roomId: string,
  userId: string,
  content: JsonObject,
  originServerTs?: number,
): Promise<StoredEvent> {
  return timeline.append(roomId, {
    type: 'm.room.member',
    stateKey: userId,
    sender,
    content,
    originServerTs,
  });
}
