import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import type { Recipient } from '../recipient.ts';
import { nidAt, type StateNids } from './room-state.ts';
import type { SentRoomMembers } from './sent-members.ts';
import type { Timeline } from './timeline.ts';

const memberPrefix = stateMapKey('m.room.member', '');

const memberKey = (userId: string) => stateMapKey('m.room.member', userId);

/** Whose memberships a client needs that loads members lazily: those who speak, and after whom the room is called. */
export function neededMembers(timeline: Timeline, heroes: readonly string[]): Set<string> {
  return new Set([...timeline.events.map(({ stored }) => stored.event.sender), ...heroes]);
}

/** Whose memberships are among the entries of a state. */
export function* membersOf(state: StateNids): Generator<string> {
  for (const key of state.keys()) if (key.startsWith(memberPrefix)) yield key.slice(memberPrefix.length);
}

/** Leaves only the needed members of a whole state, and the user's own membership. */
export function keepNeeded(state: StateNids, userId: string, needed: ReadonlySet<string>): void {
  for (const key of state.keys()) {
    if (!key.startsWith(memberPrefix)) continue;
    const member = key.slice(memberPrefix.length);
    if (member !== userId && !needed.has(member)) state.delete(key);
  }
}

/**
 * Adds the needed members to the changes of a state, but for those of whom the client has been told.
 * Source: client-server API, "Lazy-loading room members".
 */
export async function addNeeded(
  engine: RoomReader,
  head: RoomHead,
  changes: StateNids,
  { recipient, timeline, needed, told, after, upTo }: NeededMembers,
): Promise<void> {
  const shown = membersIn(timeline);
  for (const userId of needed) {
    const key = memberKey(userId);
    if (changes.has(key)) continue;
    const own = shown.get(userId);
    const nid = own && !recipient.stateAfter ? own.replaces : await nidAt(engine, head, key, upTo);
    if (nid === undefined) continue;
    const isRedundant = told.has(userId, nid, after) && !recipient.filter.room.state.includeRedundantMembers;
    if (!isRedundant) changes.set(key, nid);
  }
}

export interface NeededMembers {
  readonly recipient: Recipient;
  readonly timeline: Timeline;
  readonly needed: ReadonlySet<string>;
  readonly told: SentRoomMembers;
  readonly after: number;
  readonly upTo: number;
}

/** Takes note of the members whom an answer tells of. */
export function remember(told: SentRoomMembers, state: StateNids, timeline: Timeline, upTo: number): void {
  for (const [key, nid] of state) {
    if (key.startsWith(memberPrefix)) told.add(key.slice(memberPrefix.length), nid, upTo);
  }
  for (const { stored } of timeline.events) {
    const { type, stateKey } = stored.event;
    if (type === 'm.room.member' && stateKey !== undefined) told.add(stateKey, stored.nid, upTo);
  }
}

/** The first membership event of each user in a timeline. */
function membersIn({ events }: Timeline) {
  const first = new Map<string, { readonly replaces: number | undefined }>();
  for (const { stored } of events) {
    const { type, stateKey } = stored.event;
    if (type === 'm.room.member' && stateKey !== undefined && !first.has(stateKey))
      first.set(stateKey, stored);
  }
  return first;
}
