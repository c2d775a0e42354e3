import { joinRuleOf, membershipOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5.7, `membership` is `knock` (since v7):
 * - 5.7.1: rejects unless the join rule is `knock` (since v10 also `knock_restricted`).
 * - 5.7.2: rejects a knock for another user.
 * - 5.7.3: allows a user who is neither banned nor invited nor joined.
 * - 5.7.4: rejects any other knock.
 */
export function authorizeKnock({ event, target, room }: MembershipChange): Verdict {
  // 5.7.1; `knock_restricted` since v10
  const rule = joinRuleOf(room);
  const canKnock = rule === 'knock' || (rule === 'knock_restricted' && event.version.knockRestricted);
  if (!canKnock) return reject('The join rule of the room does not allow knocking');
  // 5.7.2
  if (event.sender !== target) return reject('Users can knock only for themselves');
  // 5.7.3, 5.7.4
  const membership = membershipOf(room, event.sender);
  const isOutside = membership !== 'ban' && membership !== 'invite' && membership !== 'join';
  return allowIf(isOutside, 'The sender is in the room, invited or banned');
}
