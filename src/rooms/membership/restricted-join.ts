import { isJsonObject, PowerLevels, type RoomEvent, serverOfUser } from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { RoomHead } from '../timeline/room-head.ts';

/**
 * The local user in whose name a join of a restricted room can be authorised: the joining user is in one of the rooms
 * that the join rule names, and the authorising user may invite. `undefined` when the room is not restricted, or when
 * there is nobody; the authorization rules then decide.
 * Source: client-server API, "Restricted rooms"; room version 8.
 */
export async function authorisingUser(
  engine: RoomEngine,
  head: RoomHead,
  userId: string,
  serverName: string,
): Promise<string | undefined> {
  const rules = await currentEvent(engine, head, 'm.room.join_rules');
  const rule = rules?.content['join_rule'];
  const restricted =
    (rule === 'restricted' && head.version.restricted) ||
    (rule === 'knock_restricted' && head.version.knockRestricted);
  if (!restricted || !(await isInAllowedRoom(engine, rules, userId))) return undefined;
  const create = await currentEvent(engine, head, 'm.room.create');
  const levels = new PowerLevels(create, await currentEvent(engine, head, 'm.room.power_levels'));
  for (const [member, membership] of head.members) {
    const mayAuthorise = membership === 'join' && serverOfUser(member) === serverName;
    if (mayAuthorise && levels.reaches(member, 'invite')) return member;
  }
  return undefined;
}

/** Whether the user is in one of the rooms of the rule's `allow` list. */
async function isInAllowedRoom(
  engine: RoomEngine,
  rules: RoomEvent | undefined,
  userId: string,
): Promise<boolean> {
  const allow = rules?.content['allow'];
  if (!Array.isArray(allow)) return false;
  for (const condition of allow) {
    if (!isJsonObject(condition) || condition['type'] !== 'm.room_membership') continue;
    const roomId = condition['room_id'];
    if (typeof roomId !== 'string') continue;
    const head = await engine.heads.get(roomId);
    if (head?.membership(userId) === 'join') return true;
  }
  return false;
}

async function currentEvent(
  engine: RoomEngine,
  head: RoomHead,
  type: string,
): Promise<RoomEvent | undefined> {
  const entry = head.entry(type, '');
  return entry && (await engine.events.get(entry.nid))?.event;
}
