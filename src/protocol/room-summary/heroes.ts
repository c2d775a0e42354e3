import type { Membership } from '../history-visibility/history-visibility.ts';

/** Maximum number of heroes. Source: client-server API, `GET /sync`, "RoomSummary". */
export const MAX_HEROES = 5;

/** One entry of the member list of a room: the user's id and membership. */
export type SummaryMember = readonly [userId: string, membership: Membership];

/**
 * Returns the heroes of a room: clients name a room without a name after them. The heroes are the first five other
 * users who are joined or invited. If there are none, they are the first five who have left or are banned. Reads no
 * more members than needed.
 * Source: client-server API, `GET /sync`, "RoomSummary".
 * @param members in the order in which the server learned of their memberships
 * @param userId the requesting user, who is never one of the heroes
 */
export function selectHeroes(members: Iterable<SummaryMember>, userId: string): string[] {
  const present: string[] = [];
  const leftOrBanned: string[] = [];
  for (const [member, membership] of members) {
    if (member === userId) continue;
    if (membership === 'join' || membership === 'invite') {
      present.push(member);
      if (present.length === MAX_HEROES) break;
    } else if (membership !== 'knock' && leftOrBanned.length < MAX_HEROES) {
      leftOrBanned.push(member);
    }
  }
  return present.length > 0 ? present : leftOrBanned;
}
