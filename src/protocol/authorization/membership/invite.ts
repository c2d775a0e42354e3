import { membershipOf, powerLevelsOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';
import { authorizeThirdPartyInvite } from './third-party-invite.ts';

/** Rule 5.4: `membership` is `invite`. */
export function authorizeInvite(change: MembershipChange): Verdict {
  const { event, target, room } = change;
  // 5.4.1
  const invite = event.content['third_party_invite'];
  if (invite !== undefined) return authorizeThirdPartyInvite(change, invite);
  // 5.4.2
  if (membershipOf(room, event.sender) !== 'join') return reject('the sender is not in the room');
  // 5.4.3
  const membership = membershipOf(room, target);
  if (membership === 'join' || membership === 'ban') return reject('the user is in the room or banned');
  // 5.4.4, 5.4.5
  return allowIf(powerLevelsOf(room).reaches(event.sender, 'invite'), 'the sender may not invite');
}
