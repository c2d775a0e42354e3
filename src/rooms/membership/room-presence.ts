import type { RoomHead } from '../timeline/room-head.ts';

/**
 * Whether this server can act in a room by itself: one of its users is in it, or nobody is any more, so that nobody
 * else can have changed it. In other rooms its copy is out of date, and getting in takes a handshake.
 */
export function isHere(head: RoomHead | undefined, serverName: string): head is RoomHead {
  if (!head?.entry('m.room.create', '')) return false;
  return head.servers.has(serverName) || head.servers.size === 0;
}
