import { type Membership, membershipOf } from '../../protocol/index.ts';
import type { MembershipChange, StateChange, StoredEvent } from '../stored-event.ts';

/**
 * Returns the membership changes among changes of the state.
 * @param cause the event that changed the state
 * @param before returns the membership of a user before the changes
 */
export function membershipChanges(
  changes: readonly StateChange[],
  cause: StoredEvent,
  before: (userId: string) => Membership | undefined,
): MembershipChange[] {
  return changes
    .filter((change) => change.type === 'm.room.member')
    .map(({ stateKey, event }) => ({
      userId: stateKey,
      from: before(stateKey),
      to: event ? membershipOf(event.event.content) : 'leave',
      eventNid: (event ?? cause).nid,
    }));
}
