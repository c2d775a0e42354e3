import { serverOfUser } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { RoomDescription } from '../room-stats/room-description.ts';

/**
 * Whether a user may see the summary of a room. All users may see it if all users may join, knock or read. Otherwise
 * members and invited users may see it, and in restricted rooms members of an allowed room.
 * Source: client-server API, `GET /rooms/{roomId}/hierarchy` and `GET /room_summary/{roomIdOrAlias}`.
 * @param userId absent for unauthenticated requests
 */
export async function maySeeSummary(
  engine: RoomReader,
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

/** Whether a user may see the summary of a remote room, as its server describes it. */
export async function maySeeRemote(
  engine: RoomReader,
  room: RoomDescription,
  userId: string | undefined,
): Promise<boolean> {
  if (room.worldReadable || ['public', 'knock', 'knock_restricted'].includes(room.joinRule)) return true;
  if (userId === undefined) return false;
  const rooms = await engine.userRooms.of(userId);
  const membership = rooms.get(room.roomId)?.membership;
  if (membership === 'join' || membership === 'invite') return true;
  if (room.joinRule !== 'restricted' || membership === 'ban') return false;
  return room.allowedRoomIds.some((roomId) => rooms.get(roomId)?.membership === 'join');
}

/** Whether a user of a remote server may see the summary of a room. Source: server-server API, "Spaces". */
export async function serverMaySee(
  engine: RoomReader,
  head: RoomHead,
  room: RoomDescription,
  serverName: string,
): Promise<boolean> {
  if (!(await mayFederateWith(engine, head, serverName))) return false;
  if (await maySeeSummary(engine, head, room, undefined)) return true;
  if (head.servers.has(serverName) || isInvited(head, serverName)) return true;
  if (room.joinRule !== 'restricted' || !head.version.restricted) return false;
  for (const roomId of room.allowedRoomIds) {
    const allowed = await engine.heads.get(roomId);
    if (allowed?.servers.has(serverName)) return true;
  }
  return false;
}

/** Whether users of a server may be in a room. Source: client-server API, `m.room.create`, "m.federate". */
async function mayFederateWith(engine: RoomReader, head: RoomHead, serverName: string): Promise<boolean> {
  const entry = head.entry('m.room.create', '');
  const create = entry && (await engine.events.get(entry.nid))?.event;
  return create?.content['m.federate'] !== false || serverOfUser(create.sender) === serverName;
}

function isInvited(head: RoomHead, serverName: string): boolean {
  for (const [userId, membership] of head.members) {
    if (membership === 'invite' && serverOfUser(userId) === serverName) return true;
  }
  return false;
}
