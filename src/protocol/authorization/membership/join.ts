import type { RoomEvent } from '../../event.ts';
import { creatorOf } from '../../power-levels/index.ts';
import { joinRuleOf, membershipOf, powerLevelsOf, type RoomState } from '../room-state.ts';
import { allow, allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5.3, `membership` is `join`:
 * - 5.3.1: allows the creator's join directly after the create event.
 * - 5.3.2: rejects a join for another user.
 * - 5.3.3: rejects a banned user.
 * - 5.3.4: with the join rule `invite` (since v7 also `knock`), allows invited and joined users only.
 * - 5.3.5: with `restricted` (since v8) or `knock_restricted` (since v10), allows invited and joined users, and other
 *   users if a member who may invite has authorised the join.
 * - 5.3.6: with `public`, allows the join.
 * - 5.3.7: rejects any other join.
 */
export function authorizeJoin({ event, target, room }: MembershipChange): Verdict {
  // 5.3.1
  if (followsOnlyCreate(event, room.create) && target === creatorOf(room.create)) return allow();
  // 5.3.2
  if (event.sender !== target) return reject('Users can join only for themselves');
  const membership = membershipOf(room, target);
  // 5.3.3
  if (membership === 'ban') return reject('The sender is banned');
  const isInvitedOrJoined = membership === 'invite' || membership === 'join';
  const rule = joinRuleOf(room);
  // 5.3.4; `knock` since v7
  if (rule === 'invite' || (rule === 'knock' && event.version.knock)) {
    return allowIf(isInvitedOrJoined, 'The sender is not invited');
  }
  // 5.3.5
  if (isRestricted(rule, event)) {
    return isInvitedOrJoined ? allow() : authorizeRestrictedJoin(event, room);
  }
  // 5.3.6, 5.3.7
  return allowIf(rule === 'public', 'The join rule of the room does not allow the join');
}

function followsOnlyCreate(event: RoomEvent, create: RoomEvent): boolean {
  return event.prevEventIds.length === 1 && event.prevEventIds[0] === create.eventId;
}

/** `restricted` since v8, `knock_restricted` since v10. */
function isRestricted(rule: string, event: RoomEvent): boolean {
  return (
    (rule === 'restricted' && event.version.restricted) ||
    (rule === 'knock_restricted' && event.version.knockRestricted)
  );
}

/** Rules 5.3.5.2 and 5.3.5.3: a member who may invite must have authorised the join. */
function authorizeRestrictedJoin(event: RoomEvent, room: RoomState): Verdict {
  const authoriser = event.content['join_authorised_via_users_server'];
  if (typeof authoriser !== 'string')
    return reject('The sender is not invited and no member authorised the join');
  if (membershipOf(room, authoriser) !== 'join')
    return reject('The user who authorised the join is not in the room');
  return allowIf(
    powerLevelsOf(room).reaches(authoriser, 'invite'),
    'The user who authorised the join may not invite',
  );
}
