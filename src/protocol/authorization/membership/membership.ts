import type { RoomEvent } from '../../event.ts';
import { domainOf, type RoomState } from '../room-state.ts';
import type { IsSignedBy } from '../server-signatures.ts';
import { reject, type Verdict } from '../verdict.ts';
import { authorizeBan } from './ban.ts';
import { authorizeInvite } from './invite.ts';
import { authorizeJoin } from './join.ts';
import { authorizeKnock } from './knock.ts';
import { authorizeLeave } from './leave.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5, `m.room.member`:
 * - 5.1: rejects an event without state key or membership.
 * - 5.2: rejects an event that the server of `join_authorised_via_users_server` has not signed (since v8).
 * - 5.3 to 5.7: `join`, `invite`, `leave`, `ban` and (since v7) `knock` have their own rules.
 * - 5.8: rejects any other membership.
 */
export function authorizeMembership(event: RoomEvent, room: RoomState, isSignedBy: IsSignedBy): Verdict {
  const membership = event.content['membership'];
  // 5.1
  if (event.stateKey === undefined) return reject('The event has no state key');
  if (membership === undefined) return reject('The event has no membership');
  // 5.2: since v8.
  if (event.version.restricted && !isSignedByAuthorisingServer(event, isSignedBy)) {
    return reject('The event is not signed by the server that authorised the join');
  }
  const change: MembershipChange = { event, target: event.stateKey, room };
  switch (membership) {
    case 'join':
      return authorizeJoin(change); // 5.3
    case 'invite':
      return authorizeInvite(change); // 5.4
    case 'leave':
      return authorizeLeave(change); // 5.5
    case 'ban':
      return authorizeBan(change); // 5.6
    case 'knock':
      if (event.version.knock) return authorizeKnock(change); // 5.7: since v7.
  }
  // 5.8
  return reject('The membership is not known');
}

function isSignedByAuthorisingServer(event: RoomEvent, isSignedBy: IsSignedBy): boolean {
  const authoriser = event.content['join_authorised_via_users_server'];
  if (authoriser === undefined) return true;
  const server = typeof authoriser === 'string' ? domainOf(authoriser) : undefined;
  return server !== undefined && isSignedBy(event, server);
}
