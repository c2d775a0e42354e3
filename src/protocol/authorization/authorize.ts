import type { RoomEvent } from '../event.ts';
import type { PowerLevels } from '../power-levels/index.ts';
import { authorizeAliases } from './aliases.ts';
import { authorizeCreate } from './create.ts';
import { authorizeMembership } from './membership/membership.ts';
import { authorizePowerLevels } from './power-levels-change.ts';
import { authorizeRedaction } from './redaction.ts';
import { domainOf, membershipOf, powerLevelsOf, type RoomState, type StateLookup } from './room-state.ts';
import { hasSignatureOf, type IsSignedBy } from './server-signatures.ts';
import { allow, allowIf, reject, type Verdict } from './verdict.ts';

/**
 * Whether the event is allowed in a room with that state: the authorization rules of the event's room version, in
 * their order, but for those about the list of its auth events (see `checkAuthEvents`).
 *
 * Rule numbers here and in the files that this one calls are those of v12; rules that it does not have any more
 * are numbered as in v1. `state` is asked only for what `selectAuthEventKeys` lists and for the create event.
 * The signatures of a received event must have been verified before; `isSignedBy` is for events that are not signed
 * yet. Never throws, whatever is in the event and in the state.
 *
 * Source: https://spec.matrix.org/latest/rooms/v12/#authorisation-rules and the same section of the others.
 */
export function authorize(
  event: RoomEvent,
  state: StateLookup,
  isSignedBy: IsSignedBy = hasSignatureOf,
): Verdict {
  // 1
  if (event.type === 'm.room.create') return authorizeCreate(event);
  const create = state('m.room.create', '');
  if (create === undefined) return reject('the room has no create event');
  // 4
  if (create.content['m.federate'] === false && domainOf(event.sender) !== domainOf(create.sender)) {
    return reject('the room is not federated and the sender is on another server');
  }
  // v1 4: v1 to v5.
  if (event.type === 'm.room.aliases' && event.version.aliasesAuthRule) return authorizeAliases(event);
  const room: RoomState = { create, lookup: state };
  // 5
  if (event.type === 'm.room.member') return authorizeMembership(event, room, isSignedBy);
  return authorizeAsMember(event, room);
}

/** Rules 6 to 11: what members of the room send, but for memberships. */
function authorizeAsMember(event: RoomEvent, room: RoomState): Verdict {
  // 6
  if (membershipOf(room, event.sender) !== 'join') return reject('the sender is not in the room');
  const levels = powerLevelsOf(room);
  // 7
  if (event.type === 'm.room.third_party_invite') {
    return allowIf(levels.reaches(event.sender, 'invite'), 'the sender may not invite');
  }
  const isState = event.stateKey !== undefined;
  // 8
  if (!levels.canSend(event.sender, event.type, isState)) {
    return reject(`the power level of the sender is too low for ${event.type}`);
  }
  // 9
  if (event.stateKey?.startsWith('@') && event.stateKey !== event.sender) {
    return reject('the state key is the id of another user');
  }
  return authorizeByType(event, room, levels);
}

function authorizeByType(event: RoomEvent, room: RoomState, levels: PowerLevels): Verdict {
  // 10
  if (event.type === 'm.room.power_levels') return authorizePowerLevels(event, room, levels);
  // v1 11: v1 and v2.
  if (event.type === 'm.room.redaction' && event.version.redactionAuthRule) {
    return authorizeRedaction(event, levels);
  }
  // 11
  return allow();
}
