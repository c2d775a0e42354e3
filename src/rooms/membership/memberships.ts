import {
  forbidden,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  serverOfUser,
} from '../../protocol/index.ts';
import type { EventToSend, RoomHead, RoomWriter, StoredEvent } from '../../room-engine/index.ts';
import { isResidentForUser } from '../../room-engine/index.ts';
import type { RemoteMemberships } from '../../room-federation/index.ts';
import type { Throttle } from '../limits.ts';
import { checkInvitePolicy, type InvitePolicy } from './invite-policy.ts';
import { join } from './joining.ts';
import type { MemberContents } from './member-content.ts';
import { currentMember, knownHead, type MembershipRequest, sendMember } from './member-event.ts';

/** Who may be asked about users; declared here, supplied at composition. */
export interface LocalUsers {
  /** Whether that account exists on this server and is active. */
  exists(userId: string): Promise<boolean>;
  isAdmin(userId: string): Promise<boolean>;
}

export interface MembershipOptions {
  readonly include_profile_data_on_invite: boolean;
  readonly block_non_admin_invites: boolean;
  readonly forget_rooms_on_leave: boolean;
  readonly allow_per_room_profiles: boolean;
}

export interface MembershipsDeps {
  readonly engine: RoomWriter;
  readonly contents: MemberContents;
  readonly users: LocalUsers;
  readonly invitePolicy: InvitePolicy;
  readonly throttle: Throttle;
  readonly options: MembershipOptions;
  readonly serverName: string;
}

/** Joins, invites, leaves, bans. Source: client-server API, "Room membership". */
export class Memberships {
  readonly #deps: MembershipsDeps;
  /** Absent: there are no other servers. */
  #remote: RemoteMemberships | undefined;
  #completeState: (roomId: string) => Promise<void> = async () => undefined;
  #checkLeave: (userId: string, roomId: string) => Promise<void> = async () => undefined;

  constructor(deps: MembershipsDeps) {
    this.#deps = deps;
  }

  /** From now on users get into rooms of other servers, and users of these are asked before they are invited. */
  attach(remote: RemoteMemberships): void {
    this.#remote = remote;
  }

  /** Who acts on the memberships of others waits until these are known. @param whole resolves when they are */
  setStateCompletion(whole: (roomId: string) => Promise<void>): void {
    this.#completeState = whole;
  }

  /** Some users must stay in some rooms. @param check throws when they ask to leave one, or to turn its invite down */
  setLeaveCheck(check: (userId: string, roomId: string) => Promise<void>): void {
    this.#checkLeave = check;
  }

  /** The part of a membership event that says who somebody is. */
  profileContent(userId: string): Promise<JsonObject> {
    return this.#deps.contents.profile(userId);
  }

  /**
   * Joins a room. For one who is in it already, `given` is the profile to have there; without it nothing changes.
   * @throws MatrixError M_GUEST_ACCESS_FORBIDDEN for guests where they may not join
   */
  join(userId: string, roomId: string, request: MembershipRequest = {}): Promise<StoredEvent> {
    return join({ ...this.#deps, remote: this.#remote }, userId, roomId, request);
  }

  /** @throws MatrixError M_FORBIDDEN also when the user is in the room or banned from it */
  async invite(
    sender: string,
    roomId: string,
    userId: string,
    { requester, given, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId);
    await this.checkInvitee(sender, userId);
    const head = await knownHead(this.#deps.engine, roomId);
    checkMember(head, sender);
    if (head.membership(userId) === 'join') throw forbidden(`${userId} is already in the room`);
    this.#deps.throttle.invite(requester, roomId, userId);
    const { serverName, engine } = this.#deps;
    const remote = this.#remote;
    const draft = await this.invitation(sender, userId, given);
    const invitation = { ...draft, stateKey: userId, originServerTs };
    if (remote && serverOfUser(userId) !== serverName) return remote.invite(head, invitation);
    return engine.timeline.append(roomId, invitation);
  }

  /**
   * Whether this server, and the invited user if it is one of its own, let `sender` invite them anywhere. For
   * invites by users of other servers as well. Who has no account yet can be invited by users of this server only:
   * others could have it remember invites for any number of names.
   * @throws MatrixError M_FORBIDDEN, M_INVITE_BLOCKED, M_NOT_FOUND for no user
   */
  async checkInvitee(sender: string, userId: string): Promise<void> {
    const { options, users, serverName, invitePolicy } = this.#deps;
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    const isLocal = serverOfUser(userId) === serverName;
    if (isLocal && options.block_non_admin_invites && !(await users.isAdmin(sender))) {
      throw forbidden('Invites have been disabled on this server');
    }
    if (!isLocal) return;
    if (serverOfUser(sender) !== serverName && !(await users.exists(userId))) {
      throw notFound('There is no such user');
    }
    await checkInvitePolicy(invitePolicy, userId, sender);
  }

  /** The event that invites a user. */
  async invitation(sender: string, userId: string, given: JsonObject = {}): Promise<EventToSend> {
    const { contents, options } = this.#deps;
    const content = options.include_profile_data_on_invite
      ? await contents.withProfile(userId, given, 'invite')
      : { ...contents.without(given), membership: 'invite' };
    return { type: 'm.room.member', stateKey: userId, sender, content };
  }

  async knock(
    userId: string,
    roomId: string,
    { given = {}, via, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    const { engine, serverName, contents } = this.#deps;
    const remote = this.#remote;
    const content = await contents.withProfile(userId, given, 'knock');
    if (remote && !(await isResidentForUser(engine, userId, roomId, serverName))) {
      const knocked = await remote.knock({ userId, roomId, via, content });
      if (knocked) return knocked;
    }
    await knownHead(this.#deps.engine, roomId);
    return sendMember(this.#deps.engine, userId, roomId, userId, content, originServerTs);
  }

  /** Leaves a room, turns an invite down or takes a knock back. For one who has left before it does nothing. */
  async leave(
    userId: string,
    roomId: string,
    { requester, given = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    const { engine, serverName } = this.#deps;
    const remote = this.#remote;
    if (requester) await this.#checkLeave(userId, roomId);
    const content = this.#memberContent(given, 'leave');
    const isElsewhere = remote && !(await isResidentForUser(engine, userId, roomId, serverName));
    const left =
      (isElsewhere ? await this.#leaveRemotely(remote, userId, roomId, content) : undefined) ??
      (await this.#leaveLocally(userId, roomId, content, originServerTs));
    await this.#forgetIfWanted(userId, roomId);
    return left;
  }

  async #leaveLocally(
    userId: string,
    roomId: string,
    content: JsonObject,
    originServerTs: number | undefined,
  ): Promise<StoredEvent> {
    const room = (await this.#deps.engine.userRooms.of(userId)).get(roomId);
    const known = await knownHead(this.#deps.engine, roomId);
    // Whether the room knows of an invite that came before this server did, its members tell.
    if (room && known.isPartial && known.membership(userId) === undefined) await this.#completeState(roomId);
    const head = await knownHead(this.#deps.engine, roomId);
    const present = head.membership(userId);
    if (present === undefined) return this.#earlierLeave(userId, roomId);
    if (present === 'ban') throw forbidden('You are banned from this room');
    if (present === 'leave') return currentMember(this.#deps.engine, head, userId);
    return sendMember(this.#deps.engine, userId, roomId, userId, content, originServerTs);
  }

  /** What ended an invite of which the room knows nothing. */
  async #earlierLeave(userId: string, roomId: string): Promise<StoredEvent> {
    const { engine } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    const end = room?.membership === 'leave' ? await engine.events.get(room.eventNid) : undefined;
    if (!end) throw notFound('You are not in this room');
    return end;
  }

  /** @returns `undefined` when this server has got into the room in the meantime */
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

  /** @throws MatrixError M_FORBIDDEN when the user is not in the room */
  async kick(
    sender: string,
    roomId: string,
    userId: string,
    { requester, given = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId);
    const head = await knownHead(this.#deps.engine, roomId);
    if (requester && userId === sender) await this.#checkLeave(userId, roomId);
    if (userId !== sender) checkMember(head, sender);
    const present = head.membership(userId);
    if (present !== 'join' && present !== 'invite' && present !== 'knock') {
      throw forbidden(`${userId} is not in the room`);
    }
    return this.#removeUser(sender, roomId, userId, this.#memberContent(given, 'leave'), originServerTs);
  }

  async ban(
    sender: string,
    roomId: string,
    userId: string,
    { given = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId);
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    await knownHead(this.#deps.engine, roomId);
    return this.#removeUser(sender, roomId, userId, this.#memberContent(given, 'ban'), originServerTs);
  }

  /** @throws MatrixError M_FORBIDDEN when the user is not banned */
  async unban(
    sender: string,
    roomId: string,
    userId: string,
    { given = {}, originServerTs }: MembershipRequest = {},
  ): Promise<StoredEvent> {
    await this.#completeState(roomId);
    const head = await knownHead(this.#deps.engine, roomId);
    checkMember(head, sender);
    if (head.membership(userId) !== 'ban') throw forbidden(`${userId} is not banned`);
    return this.#removeUser(sender, roomId, userId, this.#memberContent(given, 'leave'), originServerTs);
  }

  /** How kicks, bans and unbans end. Each new membership, unbanning as well, makes a forgotten room remembered. */
  async #removeUser(
    sender: string,
    roomId: string,
    userId: string,
    content: JsonObject,
    originServerTs: number | undefined,
  ): Promise<StoredEvent> {
    const removed = await sendMember(this.#deps.engine, sender, roomId, userId, content, originServerTs);
    await this.#forgetIfWanted(userId, roomId);
    return removed;
  }

  /** Stops remembering a room. @throws MatrixError M_UNKNOWN while the user is in it */
  async forget(userId: string, roomId: string): Promise<void> {
    const room = (await this.#deps.engine.userRooms.of(userId)).get(roomId);
    if (!room) throw notFound('You have never been in this room');
    if (room.membership !== 'leave' && room.membership !== 'ban') {
      throw new MatrixError(400, 'M_UNKNOWN', 'Leave the room before you forget it');
    }
    if (!room.forgotten) await this.#deps.engine.userRooms.forget(userId, room);
  }

  async #forgetIfWanted(userId: string, roomId: string): Promise<void> {
    const { options, serverName } = this.#deps;
    const isLocal = serverOfUser(userId) === serverName;
    if (options.forget_rooms_on_leave && isLocal) await this.forget(userId, roomId);
  }

  #memberContent(given: JsonObject, membership: string): JsonObject {
    return { ...this.#deps.contents.without(given), membership };
  }
}

/** Before anything is said of others: who is not in a room must not find out by the refusals who is. */
function checkMember(head: RoomHead, sender: string): void {
  if (head.membership(sender) !== 'join') throw forbidden('You are not in this room');
}
