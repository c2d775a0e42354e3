import type { Membership } from '../../../protocol/index.ts';
import type { MembershipChange, StoredEvent } from '../../stored-event.ts';
import type { RoomHead } from '../../timeline/room-head.ts';
import type { AppliedChange } from '../states/current-state.ts';

/** A local user whose membership came from outside of the room. */
export interface OutOfBandMember {
  readonly userId: string;
  readonly membership: Membership;
}

/**
 * From now on the room itself says what local users are to it: invites and knocks that it does not know of, because
 * they were taken back or never arrived, are over.
 * @param applied what the whole state of the room has changed
 * @param cause the event by which the state came
 */
export function endOutOfBandMemberships(
  head: RoomHead,
  outOfBandMembers: readonly OutOfBandMember[],
  applied: AppliedChange,
  cause: StoredEvent,
): { membershipChanges: readonly MembershipChange[]; stripped: Map<string, undefined> } {
  const over = outOfBandMembers
    .filter(({ membership }) => membership === 'invite' || membership === 'knock')
    .filter(({ userId }) => !head.entry('m.room.member', userId))
    .map(({ userId, membership }) => ({
      userId,
      from: membership,
      to: 'leave' as const,
      eventNid: cause.nid,
    }));
  return {
    membershipChanges: [...applied.membershipChanges, ...over],
    stripped: new Map(outOfBandMembers.map(({ userId }) => [userId, undefined])),
  };
}
