import type { RoomEvent } from '../event.ts';
import type { PowerLevels } from '../power-levels/index.ts';
import { authorizeAliases } from './aliases.ts';
import { authorizeCreate } from './create.ts';
import { authorizeMembership } from './membership/membership.ts';
import { ownsState } from './owned-state.ts';
import { authorizePowerLevels } from './power-levels-change.ts';
import { authorizeRedaction } from './redaction.ts';
import { domainOf, membershipOf, powerLevelsOf, type RoomState, type StateLookup } from './room-state.ts';
import { hasSignatureOf, type IsSignedBy } from './server-signatures.ts';
import { allow, allowIf, reject, type Verdict } from './verdict.ts';

/**
 * Decides whether an event is allowed in a room with the given state. Applies the authorization rules of the room
 * version, except the rules about `auth_events` (see `checkAuthEvents`). The rules in their order, with their numbers
 * in room version 12 (v12), or in v1 where v12 has no such rule:
 * - 1: `m.room.create` has its own rules.
 * - 4: without federation, the sender is on the server of the creator.
 * - v1 4: `m.room.aliases` has its own rules (v1 to v5).
 * - 5: `m.room.member` has its own rules.
 * - 6: the sender is joined.
 * - 7: `m.room.third_party_invite` requires the invite level.
 * - 8: the sender has the power level that the event type requires.
 * - 9: a state key that begins with `@` is the id of the sender (`ownsState`).
 * - 10: `m.room.power_levels` has further rules.
 * - v1 11: `m.room.redaction` has further rules (v1 and v2).
 * - 11: everything else is allowed.
 *
 * Reads from `state` only what `selectAuthEventKeys` lists, and the create event. The signatures of a received event
 * must have been verified; `isSignedBy` is for events that are not signed yet. Never throws, whatever the event and the
 * state hold.
 *
 * Source: https://spec.matrix.org/latest/rooms/v12/#authorisation-rules and the same section of the other versions.
 */
export function authorize(
  event: RoomEvent,
  state: StateLookup,
  isSignedBy: IsSignedBy = hasSignatureOf,
): Verdict {
  // 1
  if (event.type === 'm.room.create') return authorizeCreate(event);
  const create = state('m.room.create', '');
  if (create === undefined) return reject('The room has no create event');
  // 4
  if (create.content['m.federate'] === false && domainOf(event.sender) !== domainOf(create.sender)) {
    return reject('The room is not federated and the sender is on another server');
  }
  // v1 4: v1 to v5.
  if (event.type === 'm.room.aliases' && event.version.aliasesAuthRule) return authorizeAliases(event);
  const room: RoomState = { create, lookup: state };
  // 5
  if (event.type === 'm.room.member') return authorizeMembership(event, room, isSignedBy);
  return authorizeAsMember(event, room);
}

/** Applies rules 6 to 11, which require that the sender is joined. */
function authorizeAsMember(event: RoomEvent, room: RoomState): Verdict {
  // 6
  if (membershipOf(room, event.sender) !== 'join') return reject('The sender is not in the room');
  const levels = powerLevelsOf(room);
  // 7
  if (event.type === 'm.room.third_party_invite') {
    return allowIf(levels.reaches(event.sender, 'invite'), 'The sender may not invite');
  }
  const isState = event.stateKey !== undefined;
  // 8
  if (!levels.canSend(event.sender, event.type, isState)) {
    return reject(`The power level of the sender is too low for ${event.type}`);
  }
  // 9
  if (!ownsState(event, levels)) return reject('The state key begins with @ and is not the id of the sender');
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
