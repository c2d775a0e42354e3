import { isCompliantUserId, serverOfUser, type UserId } from '../../protocol/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';

/**
 * Whether a user is joined to a room, as far as this server knows: EDUs about the room and a user who is not joined to
 * it are ignored. While the state of the room is partial, a user without a known membership counts as joined if the
 * user's server is in the room.
 */
export function mayBeJoined(head: RoomHead, userId: UserId): boolean {
  const membership = head.membership(userId);
  if (membership !== undefined || !head.isPartial) return membership === 'join';
  return head.servers.has(serverOfUser(userId));
}

/**
 * Whether EDUs of `server` may be about this user. The user must be of `server`, and the id must be valid or a
 * historical id of printable ASCII, including upper case. Ids with an empty localpart or other characters are accepted
 * in events only (decision 0121). Source: appendices, "Historical User IDs".
 */
export function isEduUserOf(server: string, userId: unknown): userId is UserId {
  return isCompliantUserId(userId) && serverOfUser(userId) === server;
}
