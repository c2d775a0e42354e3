import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import { isPartialAt, membersFromAuthEvents } from '../../classic/rooms/partial-members.ts';
import { nidAt, type StateNids } from '../../classic/rooms/room-state.ts';
import type { Timeline } from '../../classic/rooms/timeline.ts';
import type { RoomRequest } from './room-request.ts';

const memberType = 'm.room.member';
const memberPrefix = stateMapKey(memberType, '');

/**
 * Returns the membership events that a lazy-loading client needs for a timeline: the memberships of its senders, and of
 * the users that its membership events are about, unless the client was sent them. Adds all membership changes after
 * the client's position if the timeline is not limited. Source: MSC4186, "Lazy loaded memberships".
 * @param changes changed entries of the room's state
 * @returns the nids of the membership events by user id
 */
export async function lazyMembers(
  engine: RoomReader,
  head: RoomHead,
  { room, connection, after, upTo }: RoomRequest,
  timeline: Timeline,
  changes: StateNids,
): Promise<Map<string, number>> {
  const members = new Map<string, number>();
  if (after !== undefined && !timeline.limited) {
    for (const [key, nid] of changes) {
      if (key.startsWith(memberPrefix)) members.set(key.slice(memberPrefix.length), nid);
    }
  }
  for (const userId of usersIn(timeline)) {
    if (members.has(userId)) continue;
    const nid = await nidAt(engine, head, stateMapKey(memberType, userId), upTo);
    if (nid === undefined) continue;
    const wasSent = after !== undefined && connection.sentDetails.hasMember(room.roomNid, userId, nid);
    if (!wasSent) members.set(userId, nid);
  }
  if (isPartialAt(head, upTo)) {
    const lacking = new Set<string>();
    for (const userId of usersIn(timeline)) {
      if ((await nidAt(engine, head, stateMapKey(memberType, userId), upTo)) === undefined)
        lacking.add(userId);
    }
    for (const [userId, { nid }] of await membersFromAuthEvents(engine, timeline, lacking)) {
      const wasSent = after !== undefined && connection.sentDetails.hasMember(room.roomNid, userId, nid);
      if (!wasSent) members.set(userId, nid);
    }
  }
  return members;
}

function usersIn({ events }: Timeline): Set<string> {
  const userIds = new Set<string>();
  for (const { stored } of events) {
    const { sender, type, stateKey } = stored.event;
    userIds.add(sender);
    if (type === memberType && stateKey !== undefined) userIds.add(stateKey);
  }
  return userIds;
}
