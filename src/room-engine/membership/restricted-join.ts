import { isJsonObject, PowerLevels, type RoomEvent, serverOfUser } from '../../protocol/index.ts';
import type { RoomReader } from '../room-reader.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import { isResident } from './resident-server.ts';

/**
 * Whether, and how, the join rule of a restricted room admits a user:
 * - `not needed`: the room is not restricted;
 * - `authorised`: the user meets a condition, and a local user can authorise the join;
 * - `elsewhere`: the user meets a condition, but no local user can authorise the join; `servers` may have such users;
 * - `unknown`: the user meets no condition that this server can check, but there are conditions that it cannot
 *   check;
 * - `refused`: the user meets no condition.
 */
export type RestrictedJoin =
  | { readonly kind: 'not needed' | 'unknown' | 'refused' }
  | { readonly kind: 'authorised'; readonly authoriser: string }
  | { readonly kind: 'elsewhere'; readonly servers: readonly string[] };

/**
 * Checks how a user without an invite can join a room.
 * Source: client-server API, "Restricted rooms"; server-server API, "Restricted rooms"; room version 8.
 */
export async function checkRestrictedJoin(
  engine: RoomReader,
  head: RoomHead,
  userId: string,
  serverName: string,
): Promise<RestrictedJoin> {
  const rules = await currentEvent(engine, head, 'm.room.join_rules');
  const rule = rules?.content['join_rule'];
  const restricted =
    (rule === 'restricted' && head.version.restricted) ||
    (rule === 'knock_restricted' && head.version.knockRestricted);
  if (!restricted) return { kind: 'not needed' };
  const condition = await meetsCondition(engine, rules, userId, serverName);
  if (condition !== 'met') return { kind: condition };
  const create = await currentEvent(engine, head, 'm.room.create');
  const levels = new PowerLevels(create, await currentEvent(engine, head, 'm.room.power_levels'));
  const servers = new Set<string>();
  for (const [member, membership] of head.members) {
    if (membership !== 'join' || !levels.reaches(member, 'invite')) continue;
    const server = serverOfUser(member);
    if (server === serverName) return { kind: 'authorised', authoriser: member };
    if (servers.size < maxServers) servers.add(server);
  }
  return { kind: 'elsewhere', servers: [...servers] };
}

/** Maximum number of listed servers whose users can authorise a join (`elsewhere`). */
const maxServers = 30;

/** Checks whether the user is joined to one of the rooms of the rule's `allow` list. */
async function meetsCondition(
  engine: RoomReader,
  rules: RoomEvent | undefined,
  userId: string,
  serverName: string,
): Promise<'met' | 'refused' | 'unknown'> {
  let areAllRoomsKnown = true;
  for (const roomId of allowedRoomIds(rules)) {
    const head = await engine.heads.get(roomId);
    if (!isResident(head, serverName)) areAllRoomsKnown = false;
    else if (head.membership(userId) === 'join') return 'met';
  }
  // This server is resident in each room of a local user, so it knows all rooms that can admit the user.
  return areAllRoomsKnown || serverOfUser(userId) === serverName ? 'refused' : 'unknown';
}

/** Returns the rooms whose members a join rule admits. */
export function allowedRoomIds(rules: RoomEvent | undefined): string[] {
  const allow = rules?.content['allow'];
  if (!Array.isArray(allow)) return [];
  return allow.flatMap((condition) => {
    if (!isJsonObject(condition) || condition['type'] !== 'm.room_membership') return [];
    return typeof condition['room_id'] === 'string' ? [condition['room_id']] : [];
  });
}

async function currentEvent(
  engine: RoomReader,
  head: RoomHead,
  type: string,
): Promise<RoomEvent | undefined> {
  const entry = head.entry(type, '');
  return entry && (await engine.events.get(entry.nid))?.event;
}
