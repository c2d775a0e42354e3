import type { RoomEvent } from '../event.ts';
import { serverOfUser } from '../identifiers/user-ids.ts';
import {
  type HistoryVisibility,
  historyVisibilityOf,
  type Membership,
  membershipOf,
} from './history-visibility.ts';

/** The part of an event that decides about its visibility. */
export type VisibilitySubject = Pick<RoomEvent, 'type' | 'stateKey' | 'content'>;

/** The facts about a room and a user that decide whether the user may see an event. */
export interface UserVisibilityFacts {
  readonly userId: string;
  /** The visibility in the state before the event. */
  readonly visibility: HistoryVisibility;
  /** The user's membership in the state before the event. */
  readonly membership: Membership;
  /** Whether the user joined at any time after the event was sent, even if they have left since. */
  readonly joinedLater: boolean;
}

/** The rules of the specification for one visibility and one membership. */
function allows(visibility: HistoryVisibility, membership: Membership, joinedLater: boolean): boolean {
  if (visibility === 'world_readable') return true;
  if (membership === 'join') return true;
  if (visibility === 'shared' && joinedLater) return true;
  return visibility === 'invited' && membership === 'invite';
}

/** Returns the visibility before the event and, if the event itself changes it, the one after. */
function visibilitiesAround(event: VisibilitySubject, before: HistoryVisibility): HistoryVisibility[] {
  const changes = event.type === 'm.room.history_visibility' && event.stateKey === '';
  return changes ? [before, historyVisibilityOf(event.content)] : [before];
}

/**
 * Whether the history visibility permits a user to see an event. An event that changes the visibility or the
 * user's own membership is visible if the state before or the state after the event permits it. For each of these
 * states, in the order of the specification:
 * 1. `world_readable`: visible.
 * 2. The user is joined: visible.
 * 3. `shared`, and the user joined later: visible.
 * 4. `invited`, and the user is invited: visible.
 * 5. Otherwise not visible.
 *
 * Callers apply further rules: a user who was never in the room sees world-readable events only, and a client that has
 * received an invite must also receive the event that ends the invite.
 * Source: client-server API, "Room History Visibility", server behaviour.
 */
export function isVisibleToUser(event: VisibilitySubject, facts: UserVisibilityFacts): boolean {
  const isOwnMembership = event.type === 'm.room.member' && event.stateKey === facts.userId;
  const memberships = isOwnMembership ? [facts.membership, membershipOf(event.content)] : [facts.membership];
  return visibilitiesAround(event, facts.visibility).some((visibility) =>
    memberships.some((membership) => allows(visibility, membership, facts.joinedLater)),
  );
}

/** The facts about a room and another server that decide whether the server may have an event. */
export interface ServerVisibilityFacts {
  readonly serverName: string;
  /** The visibility in the state before the event. */
  readonly visibility: HistoryVisibility;
  /** The memberships of the server's users in the state before the event. */
  readonly memberships: Iterable<Membership>;
  /** Whether a user of the server joined at any time after the event was sent. */
  readonly joinedLater: boolean;
}

/**
 * Whether another server may receive an event: only if the history visibility could permit one of the server's users
 * to see the event.
 */
export function isVisibleToServer(event: VisibilitySubject, facts: ServerVisibilityFacts): boolean {
  // Any server may have users who are not in the room, so `leave` is always one of the memberships.
  const memberships = new Set(facts.memberships).add('leave');
  if (
    event.type === 'm.room.member' &&
    event.stateKey !== undefined &&
    serverOfUser(event.stateKey) === facts.serverName
  ) {
    memberships.add(membershipOf(event.content));
  }
  return visibilitiesAround(event, facts.visibility).some((visibility) =>
    memberships.values().some((membership) => allows(visibility, membership, facts.joinedLater)),
  );
}
