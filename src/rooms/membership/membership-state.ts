import { badJson, type JsonObject, MatrixError } from '../../protocol/index.ts';
import type { RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import type { RequestingUser } from '../limits.ts';
import type { Memberships } from './memberships.ts';

const knownMemberships: ReadonlySet<string> = new Set(['join', 'invite', 'leave', 'ban', 'knock']);

/**
 * Changes a membership for a client that sends the membership event as a state event. The effects are the same as those
 * of the endpoint for the membership, for instance `/join`.
 * Source: client-server API, "Room membership".
 * @throws MatrixError M_BAD_JSON for a missing or unknown membership, M_GUEST_ACCESS_FORBIDDEN for a guest who changes
 * another user's membership, and the errors of `Memberships`
 */
export async function setMembership(
  { engine, memberships }: { engine: RoomWriter; memberships: Memberships },
  requester: RequestingUser,
  target: { roomId: string; userId: string; originServerTs?: number | undefined },
  content: JsonObject,
): Promise<StoredEvent> {
  const { roomId, userId, originServerTs } = target;
  const sender = requester.userId;
  const isOwn = userId === sender;
  const membership = content['membership'];
  if (typeof membership !== 'string') throw badJson('membership must be a string');
  if (!knownMemberships.has(membership)) throw badJson('Unknown membership');
  if (requester.isGuest && !isOwn) {
    throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may only change their own membership');
  }
  const request = { requester, extraContent: content, originServerTs };
  if (membership === 'invite') return memberships.invite(sender, roomId, userId, request);
  if (membership === 'ban') return memberships.ban(sender, roomId, userId, request);
  if (membership === 'leave' && isOwn) return memberships.leave(userId, roomId, request);
  if (membership === 'leave') {
    const head = await engine.heads.get(roomId);
    const isBanned = head?.membership(userId) === 'ban';
    return memberships[isBanned ? 'unban' : 'kick'](sender, roomId, userId, request);
  }
  if (membership === 'join' && isOwn) return memberships.join(userId, roomId, request);
  if (membership === 'knock' && isOwn) return memberships.knock(userId, roomId, request);
  // The authorization rules refuse all other changes.
  const type = 'm.room.member';
  return engine.timeline.append(roomId, { type, stateKey: userId, sender, content, originServerTs });
}
