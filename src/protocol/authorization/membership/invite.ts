import { membershipOf, powerLevelsOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';
import { authorizeThirdPartyInvite } from './third-party-invite.ts';

/**
 * Rule 5.4, `membership` is `invite`:
 * - 5.4.1: third-party invites have their own rules.
 * - 5.4.2: rejects a sender who is not joined.
 * - 5.4.3: rejects a target who is joined or banned.
 * - 5.4.4: allows a sender who reaches the invite level.
 * - 5.4.5: rejects any other invite.
 */
export function authorizeInvite(change: MembershipChange): Verdict {
  const { event, target, room } = change;
  // 5.4.1
  const invite = event.content['third_party_invite'];
  if (invite !== undefined) return authorizeThirdPartyInvite(change, invite);
  // 5.4.2
  if (membershipOf(room, event.sender) !== 'join') return reject('The sender is not in the room');
  // 5.4.3
  const membership = membershipOf(room, target);
  if (membership === 'join' || membership === 'ban') return reject('The user is in the room or banned');
  // 5.4.4, 5.4.5
  return allowIf(powerLevelsOf(room).reaches(event.sender, 'invite'), 'The sender may not invite');
}
