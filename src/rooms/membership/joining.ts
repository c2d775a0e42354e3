import { MatrixError } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import { checkRestrictedJoin, isResidentForUser, visibleContent } from '../../room-engine/index.ts';
import type { RemoteMemberships } from '../../room-federation/index.ts';
import type { Throttle } from '../limits.ts';
import type { MemberContents } from './member-content.ts';
import { currentMember, knownHead, type MembershipRequest, sendMember } from './member-event.ts';

export interface JoiningDeps {
  readonly engine: RoomWriter;
  readonly contents: MemberContents;
  readonly throttle: Throttle;
  readonly serverName: string;
  /** Absent when this server does not federate. */
  readonly remote?: RemoteMemberships | undefined;
}

/** Joins a room locally or through a resident server: see `Memberships.join`. */
export async function join(
  deps: JoiningDeps,
  userId: string,
  roomId: string,
  request: MembershipRequest,
): Promise<StoredEvent> {
  const { engine, serverName, remote } = deps;
  if (!remote || (await isResidentForUser(engine, userId, roomId, serverName)))
    return joinEnteredRoom(deps, userId, roomId, request);
  const joined = await joinRemotely(deps, remote, userId, roomId, request);
  return joined ?? joinEnteredRoom(deps, userId, roomId, request);
}

/**
 * Joins a room that this server is in. Requests the join from another server where the state is partial, or where only
 * other servers can authorise a restricted join.
 */
async function joinEnteredRoom(
  deps: JoiningDeps,
  userId: string,
  roomId: string,
  { requester, extraContent, originServerTs }: MembershipRequest,
): Promise<StoredEvent> {
  const { contents, throttle, engine, serverName, remote } = deps;
  const head = await knownHead(engine, roomId);
  const membership = head.membership(userId);
  if (membership === 'join' && !extraContent) return currentMember(engine, head, userId);
  if (membership === 'join') {
    if (requester) throttle.message(requester);
  } else {
    throttle.join(requester, roomId);
    if (requester?.isGuest && !(await guestsMayJoin(engine, head))) {
      throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may not join this room');
    }
  }
  if (membership !== 'join' && head.partial && remote) {
    // A partial state may lack a ban of the user, so a server with the whole state decides about the join.
    const { from, servers } = head.partial;
    const profile = await contents.withProfile(userId, extraContent ?? {}, 'join');
    const joined = await remote.join({ userId, roomId, only: [from, ...servers], content: profile });
    if (joined) return joined;
  }
  const content = await contents.withProfile(userId, extraContent ?? {}, 'join');
  const needsNoAdmission = membership === 'invite' || membership === 'join';
  if (needsNoAdmission) return sendMember(engine, userId, roomId, userId, content, originServerTs);
  const admission = await checkRestrictedJoin(engine, head, userId, serverName);
  if (admission.kind === 'elsewhere' && remote) {
    const joined = await remote.join({ userId, roomId, only: admission.servers, content });
    if (joined) return joined;
  }
  const authorisation =
    admission.kind === 'authorised' ? { join_authorised_via_users_server: admission.authoriser } : undefined;
  return sendMember(engine, userId, roomId, userId, { ...content, ...authorisation }, originServerTs);
}

/** Joins a room through a resident server. @returns `undefined` when this server has joined the room in the meantime */
async function joinRemotely(
  { contents, throttle }: JoiningDeps,
  remote: RemoteMemberships,
  userId: string,
  roomId: string,
  { requester, extraContent, via }: MembershipRequest,
): Promise<StoredEvent | undefined> {
  if (requester?.isGuest) {
    throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may not join rooms of other servers');
  }
  throttle.remoteJoin(requester);
  const content = await contents.withProfile(userId, extraContent ?? {}, 'join');
  return remote.join({ userId, roomId, via, content });
}

/** Whether the room allows guests. Source: client-server API, "Guest Access". */
export async function guestsMayJoin(engine: RoomReader, head: RoomHead): Promise<boolean> {
  const entry = head.entry('m.room.guest_access', '');
  const stored = entry && (await engine.events.get(entry.nid));
  return stored !== undefined && visibleContent(stored)['guest_access'] === 'can_join';
}
