import type { RoomReader } from '../room-reader.ts';
import type { RoomHead } from '../timeline/room-head.ts';

/**
 * Returns whether this server is resident in a room and can act there without a handshake: a local user is
 * joined, or no user of any server is, so that no other server can have changed the room. In other rooms the
 * local copy is out of date.
 */
export function isResident(head: RoomHead | undefined, serverName: string): head is RoomHead {
  if (!head?.entry('m.room.create', '')) return false;
  return head.servers.has(serverName) || head.servers.size === 0;
}

/**
 * Like `isResident`, for one user. Returns false also when the local copy shows an empty room, but the user has a
 * remote invite to it, or a remote server has received the knock of the user. Then a remote user has joined again, so
 * the local copy is out of date.
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
