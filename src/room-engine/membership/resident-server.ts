import type { RoomReader } from '../room-reader.ts';
import type { RoomHead } from '../timeline/room-head.ts';

/**
 * Whether this server can act in a room by itself: one of its users is in it, or nobody is any more, so that nobody
 * else can have changed it. In other rooms its copy is out of date, and getting in takes a handshake.
 */
export function isResident(head: RoomHead | undefined, serverName: string): head is RoomHead {
  if (!head?.entry('m.room.create', '')) return false;
  return head.servers.has(serverName) || head.servers.size === 0;
}

/**
 * As `isHere`, for one user. Who was invited from outside to a room that seemed deserted, or has knocked on it, knows
 * that somebody is there after all: what this server has of it is out of date.
 */
export async function isResidentForUser(
  { heads, events, userRooms }: Pick<RoomReader, 'heads' | 'events' | 'userRooms'>,
  userId: string,
  roomId: string,
  serverName: string,
): Promise<boolean> {
  const head = await heads.get(roomId);
  if (!isResident(head, serverName)) return false;
  if (head.servers.has(serverName)) return true;
  const room = (await userRooms.of(userId)).get(roomId);
  if (room?.membership !== 'invite' && room?.membership !== 'knock') return true;
  return (await events.get(room.eventNid))?.outOfBand !== true;
}
