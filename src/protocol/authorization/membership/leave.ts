import { membershipOf, powerLevelsOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5.5, `membership` is `leave` (leaving, declining an invite, retracting a knock, kicking, unbanning):
 * - 5.5.1: for the sender themselves, allows invited and joined users (since v7 also knocking users) only.
 * - 5.5.2: rejects a sender who is not joined.
 * - 5.5.3: rejects an unban by a sender below the ban level.
 * - 5.5.4: allows a sender who reaches the kick level and has a higher level than the target.
 * - 5.5.5: rejects any other leave.
 */
export function authorizeLeave({ event, target, room }: MembershipChange): Verdict {
  const { sender } = event;
  const ownMembership = membershipOf(room, sender);
  // 5.5.1; `knock` since v7
  if (sender === target) {
    const canLeave = ownMembership === 'invite' || ownMembership === 'join';
    const canRetract = ownMembership === 'knock' && event.version.knock;
    return allowIf(canLeave || canRetract, 'The sender is not in the room');
  }
  // 5.5.2
  if (ownMembership !== 'join') return reject('The sender is not in the room');
  const levels = powerLevelsOf(room);
  // 5.5.3
  if (membershipOf(room, target) === 'ban' && !levels.reaches(sender, 'ban')) {
    return reject('The sender may not unban');
  }
  // 5.5.4, 5.5.5
  const mayKick = levels.reaches(sender, 'kick') && levels.ofUser(target) < levels.ofUser(sender);
  return allowIf(mayKick, 'The sender may not kick or unban this user');
}
