import type { RoomEvent } from '../event.ts';
import { serverOfUser } from '../identifiers/user-ids.ts';
import {
  type HistoryVisibility,
  historyVisibilityOf,
  type Membership,
  membershipOf,
} from './history-visibility.ts';

/** What of an event decides about its visibility. */
export type VisibilitySubject = Pick<RoomEvent, 'type' | 'stateKey' | 'content'>;

/** What must be known of a room and a user to decide whether the user may see an event. */
export interface UserVisibilityFacts {
  readonly userId: string;
  /** The visibility in the state before the event. */
  readonly visibility: HistoryVisibility;
  /** The user's membership in the state before the event. */
  readonly membership: Membership;
  /** Whether the user has joined at any time after the event was sent, even if they have left since. */
  readonly joinedLater: boolean;
}

/** The four rules for one visibility and one membership. */
function allows(visibility: HistoryVisibility, membership: Membership, joinedLater: boolean): boolean {
  if (visibility === 'world_readable') return true;
  if (membership === 'join') return true;
  if (visibility === 'shared' && joinedLater) return true;
  return visibility === 'invited' && membership === 'invite';
}

/** The visibility before the event and, if the event itself changes it, the one after. */
function visibilitiesAround(event: VisibilitySubject, before: HistoryVisibility): HistoryVisibility[] {
  const changes = event.type === 'm.room.history_visibility' && event.stateKey === '';
  return changes ? [before, historyVisibilityOf(event.content)] : [before];
}

/**
 * Whether a user may see an event.
 *
 * These are the rules for history only. Reading a room at all needs more (a user who was never there reads nothing
 * but what is world-readable), and a client must also learn of the end of an invitation that it was shown.
 * Source: client-server API, "Room History Visibility", server behaviour.
 */
export function isVisibleToUser(event: VisibilitySubject, facts: UserVisibilityFacts): boolean {
  const isOwnMembership = event.type === 'm.room.member' && event.stateKey === facts.userId;
  const memberships = isOwnMembership ? [facts.membership, membershipOf(event.content)] : [facts.membership];
  return visibilitiesAround(event, facts.visibility).some((visibility) =>
    memberships.some((membership) => allows(visibility, membership, facts.joinedLater)),
  );
}

/** What must be known of a room and another server to decide whether the server may have an event. */
export interface ServerVisibilityFacts {
  readonly serverName: string;
  /** The visibility in the state before the event. */
  readonly visibility: HistoryVisibility;
  /** The memberships, in the state before the event, of the users of that server. */
  readonly memberships: Iterable<Membership>;
  /** Whether a user of that server has joined at any time after the event was sent. */
  readonly joinedLater: boolean;
}

/**
 * Whether another server may have an event: when one of its users might be allowed to see it, so that what users are
 * not shown is not given to their server either.
 */
export function isVisibleToServer(event: VisibilitySubject, facts: ServerVisibilityFacts): boolean {
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
