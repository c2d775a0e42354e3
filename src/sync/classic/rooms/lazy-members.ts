import { stateMapKey } from '../../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../../room-engine/index.ts';
import type { Recipient } from '../recipient.ts';
import { membersFromAuthEvents } from './partial-members.ts';
import { nidAt, type StateNids } from './room-state.ts';
import type { SentRoomMembers } from './sent-members.ts';
import type { Timeline } from './timeline.ts';

const memberPrefix = stateMapKey('m.room.member', '');

const memberKey = (userId: string) => stateMapKey('m.room.member', userId);

/** Returns the users whose memberships a lazy-loading client needs: timeline senders and heroes. */
export function neededMembers(timeline: Timeline, heroes: readonly string[]): Set<string> {
  return new Set([...timeline.events.map(({ stored }) => stored.event.sender), ...heroes]);
}

/** Yields the users whose memberships are in a state. */
export function* membersOf(state: StateNids): Generator<string> {
  for (const key of state.keys()) if (key.startsWith(memberPrefix)) yield key.slice(memberPrefix.length);
}

/**
 * Whether a lazy-loading client receives an entry of a whole state. Of the memberships it receives only the user's own
 * membership and the memberships of needed members.
 */
export function isNeededEntry(key: string, userId: string, needed: ReadonlySet<string>): boolean {
  if (!key.startsWith(memberPrefix)) return true;
  const member = key.slice(memberPrefix.length);
  return member === userId || needed.has(member);
}

/** Removes memberships from a whole state, except the memberships of needed members and of the user. */
export function removeUnneeded(state: StateNids, userId: string, needed: ReadonlySet<string>): void {
  for (const key of state.keys()) if (!isNeededEntry(key, userId, needed)) state.delete(key);
}

/**
 * Adds the memberships of needed members to the changes of a state, except memberships that the client has. Source:
 * client-server API, "Lazy-loading room members".
 */
export async function addNeeded(
  engine: RoomReader,
  head: RoomHead,
  changes: StateNids,
  { recipient, timeline, needed, sent, after, upTo }: NeededMembers,
): Promise<void> {
  const shown = membersIn(timeline);
  for (const userId of needed) {
    const key = memberKey(userId);
    if (changes.has(key)) continue;
    const inTimeline = shown.get(userId);
    const nid =
      inTimeline && !recipient.stateAfter ? inTimeline.replaces : await nidAt(engine, head, key, upTo);
    if (nid === undefined) continue;
    const isRedundant = sent.has(userId, nid, after) && !recipient.filter.room.state.includeRedundantMembers;
    if (!isRedundant) changes.set(key, nid);
  }
}

/**
 * Adds the memberships of needed members that the partial state of a room lacks, except memberships that the client
 * has. Finds them among the auth events of the timeline.
 */
export async function addFromAuthEvents(
  engine: RoomReader,
  head: RoomHead,
  state: StateNids,
  {
    recipient,
    timeline,
    needed,
    sent,
    after,
    upTo,
  }: Omit<NeededMembers, 'after'> & { after: number | undefined },
): Promise<void> {
  const shown = membersIn(timeline);
  const lacking = new Set<string>();
  for (const userId of needed) {
    const key = memberKey(userId);
    if (shown.has(userId) || state.has(key)) continue;
    if ((await nidAt(engine, head, key, upTo)) === undefined) lacking.add(userId);
  }
  for (const [userId, { nid }] of await membersFromAuthEvents(engine, timeline, lacking)) {
    const wasSent = after !== undefined && sent.has(userId, nid, after);
    if (!wasSent || recipient.filter.room.state.includeRedundantMembers) state.set(memberKey(userId), nid);
  }
}

/** Which memberships an answer needs, and which the client has. */
export interface NeededMembers {
  readonly recipient: Recipient;
  readonly timeline: Timeline;
  /** The users whose memberships the answer needs. */
  readonly needed: ReadonlySet<string>;
  readonly sent: SentRoomMembers;
  readonly after: number;
  readonly upTo: number;
}

/** Records the memberships that an answer contains. */
export function recordSent(sent: SentRoomMembers, state: StateNids, timeline: Timeline, upTo: number): void {
  for (const [key, nid] of state) {
    if (key.startsWith(memberPrefix)) sent.add(key.slice(memberPrefix.length), nid, upTo);
  }
  for (const { stored } of timeline.events) {
    const { type, stateKey } = stored.event;
    if (type === 'm.room.member' && stateKey !== undefined) sent.add(stateKey, stored.nid, upTo);
  }
}

/** Returns the first membership event of each user in a timeline. */
function membersIn({ events }: Timeline) {
  const first = new Map<string, { readonly replaces: number | undefined }>();
  for (const { stored } of events) {
    const { type, stateKey } = stored.event;
    if (type === 'm.room.member' && stateKey !== undefined && !first.has(stateKey))
      first.set(stateKey, stored);
  }
  return first;
}
