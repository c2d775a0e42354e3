import { membershipOf, powerLevelsOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5.6, `membership` is `ban`:
 * - 5.6.1: rejects a sender who is not joined.
 * - 5.6.2: allows a sender who reaches the ban level and has a higher level than the target.
 * - 5.6.3: rejects any other ban.
 */
export function authorizeBan({ event, target, room }: MembershipChange): Verdict {
  // 5.6.1
  if (membershipOf(room, event.sender) !== 'join') return reject('The sender is not in the room');
  // 5.6.2, 5.6.3
  const levels = powerLevelsOf(room);
  const mayBan = levels.reaches(event.sender, 'ban') && levels.ofUser(target) < levels.ofUser(event.sender);
  return allowIf(mayBan, 'The sender may not ban this user');
}
