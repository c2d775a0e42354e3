import type { StreamWriter } from '../../kernel/streams/index.ts';
import {
  forbidden,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  serverOfUser,
  unknown,
} from '../../protocol/index.ts';
import type { EventToSend, RoomHead, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import { isResidentForUser } from '../../room-engine/index.ts';
import type { RemoteMemberships } from '../../room-federation/index.ts';
import type { BlockedRooms } from '../blocking/blocked-rooms.ts';
import type { Throttle } from '../limits.ts';
import { checkInvitePolicy, type InvitePolicy } from './invite-policy.ts';
import { join } from './joining.ts';
import type { MemberContents } from './member-content.ts';
import { currentMember, knownHead, type MembershipRequest, sendMember } from './member-event.ts';

/** Look-ups of local accounts; supplied at composition. */
export interface LocalUsers {
  isAdmin(userId: string): Promise<boolean>;
}

export interface MembershipOptions {
  readonly include_profile_data_on_invite: boolean;
  readonly block_non_admin_invites: boolean;
  readonly forget_rooms_on_leave: boolean;
  readonly allow_per_room_profiles: boolean;
}

/**
 * Checks whether a user may leave a room or reject its invite; supplied at composition.
 * @throws MatrixError when the user may not
 */
export type LeaveCheck = (userId: string, roomId: string, rooms: Pick<RoomWriter, 'heads'>) => Promise<void>;

export interface MembershipsDeps {
  readonly streams: StreamWriter;
  readonly engine: RoomWriter;
  readonly contents: MemberContents;
  readonly users: LocalUsers;
  readonly invitePolicy: InvitePolicy;
  readonly throttle: Throttle;
  readonly blocked: BlockedRooms;
  readonly options: MembershipOptions;
  readonly serverName: string;
  /** Absent: this server does not federate. */
  readonly remote?: RemoteMemberships | undefined;
  /** By default every user may leave every room. */
  readonly leaveCheck?: LeaveCheck | undefined;
  /**
   * Resolves when the state of the room is complete, or after some seconds. Membership changes wait for it
   * when a partial state lacks the current membership. By default all states are complete.
   */
  readonly stateComplete?: (roomId: string) => Promise<void>;
}

/** Changes memberships for local users. Source: client-server API, "Room membership". */
export class Memberships {
  readonly #deps: MembershipsDeps;

  constructor(deps: MembershipsDeps) {
    this.#deps = deps;
  }

  /** Returns the profile fields of a membership event. */
  profileContent(userId: string): Promise<JsonObject> {
    return this.#deps.contents.profile(userId);
  }

  /**
   * Joins a room. For a joined user, `request.extraContent` is the profile for this room; a request without a profile
   * changes nothing.
   * @throws MatrixError M_GUEST_ACCESS_FORBIDDEN where guests may not join, M_FORBIDDEN, M_NOT_FOUND, M_LIMIT_EXCEEDED
   */
  async join(userId: string, roomId: string, request: MembershipRequest = {}): Promise<StoredEvent> {
    this.#deps.blocked.check(roomId);
    return join(this.#deps, userId, roomId, request);
  }

  /**
   * Invites a user.
   * @throws MatrixError M_FORBIDDEN, also when `userId` is joined or banned; M_NOT_FOUND, M_LIMIT_EXCEEDED, and the errors
   * of `checkInvitee`
   */
  async invite(
    sender: string,
    roomId: string,
    userId: string,
    { requester, extraContent, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId, userId);
    await this.checkInvitee(sender, userId, roomId);
    const head = await knownHead(this.#deps.engine, roomId);
    checkMember(head, sender);
    if (head.membership(userId) === 'join') throw forbidden(`${userId} is already in the room`);
    const limits = this.#deps.throttle.inviteLimitsOf(requester);
    this.#deps.throttle.invite(requester, roomId, userId, limits && (await limits));
    const { serverName, engine } = this.#deps;
    const remote = this.#deps.remote;
    const draft = await this.invitation(sender, userId, extraContent);
    const invitation = { ...draft, stateKey: userId, originServerTs };
    if (remote && serverOfUser(userId) !== serverName) return remote.invite(head, invitation);
    return engine.timeline.append(roomId, invitation);
  }

  /**
   * Checks that this server allows invites by `sender`, a local or remote user; and that the invited user allows them,
   * if that user is local. The user id may have no account yet: a bridge or a first login may create it later.
   * @param roomId absent for a room that is being created
   * @throws MatrixError M_FORBIDDEN, also for blocked rooms; M_INVITE_BLOCKED, M_INVALID_PARAM for an invalid user id
   */
  async checkInvitee(sender: string, userId: string, roomId?: string): Promise<void> {
    if (roomId !== undefined) this.#deps.blocked.check(roomId);
    const { options, users, serverName, invitePolicy } = this.#deps;
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a valid user ID`);
    const isLocal = serverOfUser(userId) === serverName;
    if (isLocal && options.block_non_admin_invites && !(await users.isAdmin(sender))) {
      throw forbidden('Invites have been disabled on this server');
    }
    if (isLocal) await checkInvitePolicy(invitePolicy, userId, sender);
  }

  /** Returns the draft of an invite event. */
  async invitation(sender: string, userId: string, extraContent: JsonObject = {}): Promise<EventToSend> {
    const { contents, options } = this.#deps;
    const content = options.include_profile_data_on_invite
      ? await contents.withProfile(userId, extraContent, 'invite')
      : { ...(await contents.permitted(extraContent)), membership: 'invite' };
    return { type: 'm.room.member', stateKey: userId, sender, content };
  }

  /**
   * Knocks on a room, locally or through a resident server.
   * @throws MatrixError M_FORBIDDEN, also where the room does not allow knocks; M_NOT_FOUND, M_LIMIT_EXCEEDED
   */
  async knock(
    userId: string,
    roomId: string,
    { requester, extraContent = {}, via, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    const { engine, serverName, contents, blocked, throttle } = this.#deps;
    blocked.check(roomId);
    if (requester) throttle.message(requester);
    const remote = this.#deps.remote;
    const content = await contents.withProfile(userId, extraContent, 'knock');
    if (remote && !(await isResidentForUser(engine, userId, roomId, serverName))) {
      const knocked = await remote.knock({ userId, roomId, via, content });
      if (knocked) return knocked;
    }
    await knownHead(this.#deps.engine, roomId);
    return sendMember(this.#deps.engine, userId, roomId, userId, content, originServerTs);
  }

  /**
   * Leaves a room, rejects an invite or retracts a knock. Sends nothing for a user who has left.
   * @throws MatrixError M_FORBIDDEN for a banned user, M_NOT_FOUND for a user who was never in the room, M_UNKNOWN with
   * 504 when a partial state lacks the membership, and the errors of the leave check
   */
  async leave(
    userId: string,
    roomId: string,
    { requester, extraContent = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    const { engine, serverName } = this.#deps;
    const remote = this.#deps.remote;
    if (requester) await this.#checkLeave(userId, roomId);
    const content = await this.#memberContent(extraContent, 'leave');
    const isElsewhere = remote && !(await isResidentForUser(engine, userId, roomId, serverName));
    const leaveEvent =
      (isElsewhere ? await this.#leaveRemotely(remote, userId, roomId, content) : undefined) ??
      (await this.#leaveLocally(userId, roomId, content, originServerTs));
    await this.#forgetIfConfigured(userId, roomId);
    return leaveEvent;
  }

  async #leaveLocally(
    userId: string,
    roomId: string,
    content: JsonObject,
    originServerTs: number | undefined,
  ): Promise<StoredEvent> {
    const room = (await this.#deps.engine.userRooms.of(userId)).get(roomId);
    const isInvitedOrKnocking = room?.membership === 'invite' || room?.membership === 'knock';
    // An invite from before this server joined may be in the part of the state that is not known yet.
    if (room) await this.#completeState(roomId, userId);
    const head = await knownHead(this.#deps.engine, roomId);
    const membership = head.membership(userId);
    if (membership === undefined && head.isPartial && isInvitedOrKnocking) throw membersUnknown();
    if (membership === undefined) return this.#earlierLeave(userId, roomId);
    if (membership === 'ban') throw forbidden('You are banned from this room');
    if (membership === 'leave') return currentMember(this.#deps.engine, head, userId);
    return sendMember(this.#deps.engine, userId, roomId, userId, content, originServerTs);
  }

  /** Returns the leave event that ended an invite or a knock while this server was not in the room. @throws M_NOT_FOUND */
  async #earlierLeave(userId: string, roomId: string): Promise<StoredEvent> {
    const { engine } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    const leaveEvent = room?.membership === 'leave' ? await engine.events.get(room.eventNid) : undefined;
    if (!leaveEvent) throw notFound('You are not in this room');
    return leaveEvent;
  }

  /** @returns `undefined` when this server has joined the room in the meantime */
  async #leaveRemotely(
    remote: RemoteMemberships,
    userId: string,
    roomId: string,
    content: JsonObject,
  ): Promise<StoredEvent | undefined> {
    const { engine } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (!room) throw notFound('You are not in this room');
    if (room.membership === 'ban') throw forbidden('You are banned from this room');
    if (room.membership === 'leave') return engine.events.get(room.eventNid);
    return remote.leave(userId, room, content);
  }

  /**
   * Kicks a user, withdraws their invite or denies their knock.
   * @throws MatrixError M_FORBIDDEN, also when `userId` is neither joined, invited nor knocking; M_NOT_FOUND
   */
  async kick(
    sender: string,
    roomId: string,
    userId: string,
    { requester, extraContent = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId, userId);
    const head = await knownHead(this.#deps.engine, roomId);
    if (requester && userId === sender) await this.#checkLeave(userId, roomId);
    if (userId !== sender) checkMember(head, sender);
    const membership = head.membership(userId);
    const mayBeMember = membership === undefined && head.isPartial;
    if (membership !== 'join' && membership !== 'invite' && membership !== 'knock' && !mayBeMember) {
      throw forbidden(`${userId} is not in the room`);
    }
    return this.#removeUser(
      sender,
      roomId,
      userId,
      await this.#memberContent(extraContent, 'leave'),
      originServerTs,
    );
  }

  /** Bans a user. @throws MatrixError M_FORBIDDEN; M_NOT_FOUND; M_INVALID_PARAM for an invalid user id */
  async ban(
    sender: string,
    roomId: string,
    userId: string,
    { extraContent = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId, userId);
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a valid user ID`);
    await knownHead(this.#deps.engine, roomId);
    const content = await this.#memberContent(extraContent, 'ban');
    return this.#removeUser(sender, roomId, userId, content, originServerTs);
  }

  /**
   * Unbans a user.
   * @throws MatrixError M_BAD_STATE when the user is not banned, M_FORBIDDEN, M_NOT_FOUND, and M_UNKNOWN with 504 when a
   * partial state lacks the membership
   */
  async unban(
    sender: string,
    roomId: string,
    userId: string,
    { extraContent = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId, userId);
    const head = await knownHead(this.#deps.engine, roomId);
    checkMember(head, sender);
    if (head.membership(userId) === undefined && head.isPartial) throw membersUnknown();
    if (head.membership(userId) !== 'ban')
      throw new MatrixError(403, 'M_BAD_STATE', `${userId} is not banned`);
    return this.#removeUser(
      sender,
      roomId,
      userId,
      await this.#memberContent(extraContent, 'leave'),
      originServerTs,
    );
  }

  /**
   * Sends the event of a kick, ban or unban, and then forgets the room if configured. The order matters: the new event
   * ends an earlier forgetting of the room.
   */
  async #removeUser(
    sender: string,
    roomId: string,
    userId: string,
    content: JsonObject,
    originServerTs: number | undefined,
  ): Promise<StoredEvent> {
    const sent = await sendMember(this.#deps.engine, sender, roomId, userId, content, originServerTs);
    await this.#forgetIfConfigured(userId, roomId);
    return sent;
  }

  /**
   * Forgets a room.
   * @throws MatrixError M_UNKNOWN while the user is joined, invited or knocking; M_NOT_FOUND for a user who was never in it
   */
  async forget(userId: string, roomId: string): Promise<void> {
    const room = (await this.#deps.engine.userRooms.of(userId)).get(roomId);
    if (!room) throw notFound('You have never been in this room');
    if (room.membership !== 'leave' && room.membership !== 'ban') {
      throw new MatrixError(400, 'M_UNKNOWN', 'Leave the room before you forget it');
    }
    if (!room.forgotten) await this.#deps.engine.userRooms.forget(this.#deps.streams, userId, room);
  }

  async #forgetIfConfigured(userId: string, roomId: string): Promise<void> {
    const { options, serverName } = this.#deps;
    const isLocal = serverOfUser(userId) === serverName;
    if (options.forget_rooms_on_leave && isLocal) await this.forget(userId, roomId);
  }

  /** Waits until a partial state is complete, if the user's membership may be missing in it. */
  async #completeState(roomId: string, userId: string): Promise<void> {
    const { engine, stateComplete } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (head?.isPartial && head.membership(userId) === undefined) await stateComplete?.(roomId);
  }

  async #checkLeave(userId: string, roomId: string): Promise<void> {
    await this.#deps.leaveCheck?.(userId, roomId, this.#deps.engine);
  }

  async #memberContent(extraContent: JsonObject, membership: string): Promise<JsonObject> {
    return { ...(await this.#deps.contents.permitted(extraContent)), membership };
  }
}

/** The error for a change that depends on a membership which no server has provided yet. */
const membersUnknown = () => unknown('The members of this room are not known yet. Try again later', 504);

/**
 * Requires that the sender is joined. Must be called before checks of the target, whose errors would disclose
 * memberships to other users.
 */
function checkMember(head: RoomHead, sender: string): void {
  if (head.membership(sender) !== 'join') throw forbidden('You are not in this room');
}
