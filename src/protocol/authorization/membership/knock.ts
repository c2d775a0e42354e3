import { joinRuleOf, membershipOf } from '../room-state.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/** Rule 5.7: `membership` is `knock`, since v7. */
export function authorizeKnock({ event, target, room }: MembershipChange): Verdict {
  // 5.7.1; `knock_restricted` since v10
  const rule = joinRuleOf(room);
  const canKnock = rule === 'knock' || (rule === 'knock_restricted' && event.version.knockRestricted);
  if (!canKnock) return reject('the join rule of the room lets nobody knock');
  // 5.7.2
  if (event.sender !== target) return reject('nobody can knock for somebody else');
  // 5.7.3, 5.7.4
  const membership = membershipOf(room, event.sender);
  const isOutside = membership !== 'ban' && membership !== 'invite' && membership !== 'join';
  return allowIf(isOutside, 'the sender is in the room, invited or banned');
}
