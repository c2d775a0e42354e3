import { isCompliantUserId, serverOfUser, type UserId } from '../../protocol/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';

/**
 * Whether a user is joined to a room, as far as this server knows, so that EDUs about the user may concern the room.
 * While the state of the room is partial, a user without a known membership counts as joined if the user's server is in
 * the room.
 */
export function mayBeJoined(head: RoomHead, userId: UserId): boolean {
  const membership = head.membership(userId);
  if (membership !== undefined || !head.isPartial) return membership === 'join';
  return head.servers.has(serverOfUser(userId));
}

/**
 * Whether EDUs of `server` may concern this user: a user of `server`, with an id that may be sent to clients outside of
 * events. Historical ids of printable ASCII, including upper case, are allowed; ids that are empty or have other
 * characters may occur in events only (decision 0121). Source: appendices, "Historical User IDs".
 */
export function isEduUserOf(server: string, userId: unknown): userId is UserId {
  return isCompliantUserId(userId) && serverOfUser(userId) === server;
}
