import type { Membership } from '../history-visibility/history-visibility.ts';

/** Maximum number of heroes. Source: client-server API, `GET /sync`, "RoomSummary". */
export const MAX_HEROES = 5;

/** One entry of the member list of a room. */
export interface SummaryMember {
  readonly userId: string;
  readonly membership: Membership;
}

/**
 * Returns the heroes of a room, after whom clients name a room without a name: the first five other users who
 * are joined or invited, or if there are none, the first five who have left or are banned. Reads no more
 * members than needed.
 * Source: client-server API, `GET /sync`, "RoomSummary".
 * @param members in the order in which the server learned of their memberships
 * @param userId the user who asks; never one of the heroes
 */
export function selectHeroes(members: Iterable<SummaryMember>, userId: string): string[] {
  const present: string[] = [];
  const gone: string[] = [];
  for (const member of members) {
    if (member.userId === userId) continue;
    if (member.membership === 'join' || member.membership === 'invite') {
      present.push(member.userId);
      if (present.length === MAX_HEROES) break;
    } else if (member.membership !== 'knock' && gone.length < MAX_HEROES) {
      gone.push(member.userId);
    }
  }
  return present.length > 0 ? present : gone;
}
