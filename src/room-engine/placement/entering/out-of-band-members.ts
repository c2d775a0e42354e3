import type { Membership } from '../../../protocol/index.ts';
import type { MembershipChange, StoredEvent } from '../../stored-event.ts';
import type { RoomHead } from '../../timeline/room-head.ts';
import type { AppliedChange } from '../states/current-state.ts';

/** A local user who was invited to a room that this server was not in, or knocked on it. */
export interface OutOfBandMember {
  readonly userId: string;
  readonly membership: Membership;
}

/**
 * Ends the out-of-band memberships of a room that this server has entered: the room's state replaces them. Invites and
 * knocks of users who have no membership event in that state become leaves.
 * @param applied the change of the current state that entering the room made
 * @param cause the event that brought the state
 * @returns all changes of memberships, and the users whose stripped state is deleted
 */
export function endOutOfBandMemberships(
  head: RoomHead,
  outOfBandMembers: readonly OutOfBandMember[],
  applied: AppliedChange,
  cause: StoredEvent,
): { membershipChanges: readonly MembershipChange[]; stripped: Map<string, undefined> } {
  const ended = outOfBandMembers
    .filter(({ membership }) => membership === 'invite' || membership === 'knock')
    .filter(({ userId }) => !head.entry('m.room.member', userId))
    .map(({ userId, membership }) => ({
      userId,
      from: membership,
      to: 'leave' as const,
      eventNid: cause.nid,
    }));
  return {
    membershipChanges: [...applied.membershipChanges, ...ended],
    stripped: new Map(outOfBandMembers.map(({ userId }) => [userId, undefined])),
  };
}
