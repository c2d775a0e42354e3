import type { RoomEngine, RoomHead } from '../../rooms/index.ts';
import type { RoomDescription } from '../room-stats/room-description.ts';

/**
 * Whether somebody may see what a room shows of itself: they are in it or may enter it, or anybody may knock at it or
 * read it. Source: client-server API, `GET /rooms/{roomId}/hierarchy` and `GET /room_summary/{roomIdOrAlias}`.
 * @param userId absent for those who are not logged in
 */
export async function maySeeSummary(
  engine: RoomEngine,
  head: RoomHead,
  room: RoomDescription,
  userId: string | undefined,
): Promise<boolean> {
  const { joinRule, worldReadable, allowedRoomIds } = room;
  if (worldReadable || joinRule === 'public') return true;
  if (joinRule === 'knock' && head.version.knock) return true;
  if (joinRule === 'knock_restricted' && head.version.knockRestricted) return true;
  if (userId === undefined) return false;
  const membership = head.membership(userId);
  if (membership === 'join' || membership === 'invite') return true;
  if (joinRule !== 'restricted' || !head.version.restricted || membership === 'ban') return false;
  const rooms = await engine.userRooms.of(userId);
  return allowedRoomIds.some((roomId) => rooms.get(roomId)?.membership === 'join');
}
