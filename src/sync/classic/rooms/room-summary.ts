import {
  type JsonObject,
  type Membership,
  membershipOf,
  roomSummaryOf,
  selectHeroes,
  splitStateMapKey,
  stateMapKey,
} from '../../../protocol/index.ts';
import { type RoomHead, type RoomReader, visibleContent } from '../../../room-engine/index.ts';
import { nidAt } from './room-state.ts';
import type { Timeline } from './timeline.ts';

/** Event types that may change the summary. */
const summaryTypes = new Set(['m.room.member', 'm.room.name', 'm.room.canonical_alias']);

/** Whether a client that knows the room needs its summary again. */
export function mayChangeSummary(timeline: Timeline | undefined): boolean {
  if (!timeline) return false;
  return (
    timeline.hidesState ||
    timeline.events.some(
      ({ stored: { event } }) => event.stateKey !== undefined && summaryTypes.has(event.type),
    )
  );
}

/** The members of a room, as far as the summary needs them. */
export interface MemberSummary {
  /** The users whose names make up the name of a room that has none. */
  readonly heroes: string[];
  readonly joinedCount: number;
  readonly invitedCount: number;
}

/**
 * Returns the member summary of a room at a stream position. Changes after the position are undone where the head
 * contains them: a client whose member list does not match the counts may encrypt for too few members.
 */
export async function memberSummaryAt(
  engine: RoomReader,
  head: RoomHead,
  userId: string,
  position: number,
): Promise<MemberSummary> {
  if (head.changedAt <= position) {
    const [joinedCount, invitedCount] = [head.memberCount('join'), head.memberCount('invite')];
    return { heroes: selectHeroes(head.members, userId), joinedCount, invitedCount };
  }
  const members = new Map(head.members);
  const later = [...head.state].filter(([, { membership, stream }]) => membership && stream > position);
  for (const [key] of later) {
    const history = await engine.stateHistory(head.roomNid, key);
    const before = history.findLast(({ stream }) => stream <= position)?.event;
    const [, member] = splitStateMapKey(key);
    if (before) members.set(member, membershipOf(before.event.content));
    else members.delete(member);
  }
  const memberships = [...members.values()];
  const count = (wanted: Membership) => memberships.filter((membership) => membership === wanted).length;
  return {
    heroes: selectHeroes(members, userId),
    joinedCount: count('join'),
    invitedCount: count('invite'),
  };
}

/** Returns heroes and counts. Source: client-server API, `GET /sync`, "RoomSummary". */
export async function summaryAt(
  engine: RoomReader,
  head: RoomHead,
  memberSummary: MemberSummary,
  position: number,
): Promise<JsonObject> {
  const text = async (type: string, key: string) => {
    const nid = await nidAt(engine, head, stateMapKey(type, ''), position);
    const stored = nid === undefined ? undefined : await engine.events.get(nid);
    const value = stored && visibleContent(stored)[key];
    return typeof value === 'string' ? value : undefined;
  };
  const [name, canonicalAlias] = await Promise.all([
    text('m.room.name', 'name'),
    text('m.room.canonical_alias', 'alias'),
  ]);
  return roomSummaryOf({ name, canonicalAlias, ...memberSummary });
}
