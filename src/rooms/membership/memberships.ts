import {
  forbidden,
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  serverOfUser,
} from '../../protocol/index.ts';
import type { RoomEngine } from '../engine.ts';
import type { StoredEvent } from '../stored-event.ts';
import type { RoomHead } from '../timeline/room-head.ts';
import { authorisingUser } from './restricted-join.ts';

/** Where display names and avatars come from; declared here, supplied at composition. */
export interface MemberProfiles {
  /** What of the profile of a local user goes into membership events. */
  profile(userId: string): Promise<{ displayname?: string | undefined; avatar_url?: string | undefined }>;
}

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
}

export interface MembershipsParts {
  readonly engine: RoomEngine;
  readonly profiles: MemberProfiles;
  readonly users: LocalUsers;
  readonly options: MembershipOptions;
  readonly serverName: string;
}

/** Joins, invites, leaves, bans. Source: client-server API, "Room membership". */
export class Memberships {
  readonly #parts: MembershipsParts;

  constructor(parts: MembershipsParts) {
    this.#parts = parts;
  }

  /** The part of a membership event that says who somebody is. */
  async profileContent(userId: string): Promise<JsonObject> {
    if (serverOfUser(userId) !== this.#parts.serverName) return {};
    const { displayname, avatar_url } = await this.#parts.profiles.profile(userId);
    return {
      ...(displayname === undefined ? undefined : { displayname }),
      ...(avatar_url === undefined ? undefined : { avatar_url }),
    };
  }

  /**
   * Joins a room; joining one that the user is in already does nothing.
   * @param given further content, for instance `reason` or `third_party_signed`
   */
  async join(
    userId: string,
    roomId: string,
    { isGuest = false, given = {} }: { isGuest?: boolean; given?: JsonObject } = {},
  ): Promise<StoredEvent | undefined> {
    const head = await this.#head(roomId);
    const present = head.membership(userId);
    if (present === 'join') return undefined;
    if (isGuest && !(await this.#guestsMayJoin(head))) {
      throw new MatrixError(403, 'M_GUEST_ACCESS_FORBIDDEN', 'Guests may not join this room');
    }
    const via = present === 'invite' ? undefined : await this.#authorisingUser(head, userId);
    const content: JsonObject = {
      ...(await this.profileContent(userId)),
      ...given,
      membership: 'join',
      ...(via === undefined ? undefined : { join_authorised_via_users_server: via }),
    };
    return this.#send(userId, roomId, userId, content);
  }

  /** @throws MatrixError M_FORBIDDEN also when the user is in the room or banned from it */
  async invite(
    sender: string,
    roomId: string,
    userId: string,
    { isDirect = false, reason }: { isDirect?: boolean; reason?: string | undefined } = {},
  ): Promise<StoredEvent> {
    const { options, users, serverName } = this.#parts;
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    const isLocal = serverOfUser(userId) === serverName;
    if (isLocal && options.block_non_admin_invites && !(await users.isAdmin(sender))) {
      throw forbidden('Invites have been disabled on this server');
    }
    if (isLocal && !(await users.exists(userId))) throw notFound('There is no such user');
    const head = await this.#head(roomId);
    if (head.membership(userId) === 'join') throw forbidden(`${userId} is already in the room`);
    const profile = options.include_profile_data_on_invite ? await this.profileContent(userId) : {};
    return this.#send(sender, roomId, userId, {
      ...profile,
      ...(isDirect ? { is_direct: true } : undefined),
      ...withReason(reason),
      membership: 'invite',
    });
  }

  async knock(userId: string, roomId: string, reason?: string): Promise<StoredEvent> {
    await this.#head(roomId);
    const profile = await this.profileContent(userId);
    return this.#send(userId, roomId, userId, { ...profile, ...withReason(reason), membership: 'knock' });
  }

  /** Leaves a room, or turns an invite down. Leaving a room that was left before does nothing. */
  async leave(userId: string, roomId: string, reason?: string): Promise<void> {
    const head = await this.#head(roomId);
    const present = head.membership(userId);
    if (present === undefined) throw notFound('You are not in this room');
    if (present === 'ban') throw forbidden('You are banned from this room');
    if (present !== 'leave') {
      await this.#send(userId, roomId, userId, { ...withReason(reason), membership: 'leave' });
    }
    if (this.#parts.options.forget_rooms_on_leave) await this.forget(userId, roomId);
  }

  /** @throws MatrixError M_FORBIDDEN when the user is not in the room */
  async kick(sender: string, roomId: string, userId: string, reason?: string): Promise<void> {
    const head = await this.#head(roomId);
    const present = head.membership(userId);
    if (present !== 'join' && present !== 'invite' && present !== 'knock') {
      throw forbidden(`${userId} is not in the room`);
    }
    await this.#send(sender, roomId, userId, { ...withReason(reason), membership: 'leave' });
    await this.#forgetIfWanted(userId, roomId);
  }

  async ban(sender: string, roomId: string, userId: string, reason?: string): Promise<void> {
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    await this.#head(roomId);
    await this.#send(sender, roomId, userId, { ...withReason(reason), membership: 'ban' });
    await this.#forgetIfWanted(userId, roomId);
  }

  /** @throws MatrixError M_FORBIDDEN when the user is not banned */
  async unban(sender: string, roomId: string, userId: string, reason?: string): Promise<void> {
    const head = await this.#head(roomId);
    if (head.membership(userId) !== 'ban') throw forbidden(`${userId} is not banned`);
    await this.#send(sender, roomId, userId, { ...withReason(reason), membership: 'leave' });
  }

  /** Stops remembering a room. @throws MatrixError M_UNKNOWN while the user is in it */
  async forget(userId: string, roomId: string): Promise<void> {
    const room = (await this.#parts.engine.userRooms.of(userId)).get(roomId);
    if (!room) throw notFound('You have never been in this room');
    if (room.membership !== 'leave' && room.membership !== 'ban') {
      throw new MatrixError(400, 'M_UNKNOWN', 'Leave the room before you forget it');
    }
    if (!room.forgotten) await this.#parts.engine.userRooms.forget(userId, room);
  }

  async #forgetIfWanted(userId: string, roomId: string): Promise<void> {
    const { options, serverName } = this.#parts;
    if (options.forget_rooms_on_leave && serverOfUser(userId) === serverName)
      await this.forget(userId, roomId);
  }

  #send(sender: string, roomId: string, userId: string, content: JsonObject): Promise<StoredEvent> {
    const { timeline } = this.#parts.engine;
    return timeline.append(roomId, { type: 'm.room.member', stateKey: userId, sender, content });
  }

  async #head(roomId: string): Promise<RoomHead> {
    const head = await this.#parts.engine.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    return head;
  }

  async #guestsMayJoin(head: RoomHead): Promise<boolean> {
    const entry = head.entry('m.room.guest_access', '');
    const event = entry && (await this.#parts.engine.events.get(entry.nid));
    return event?.event.content['guest_access'] === 'can_join';
  }

  #authorisingUser(head: RoomHead, userId: string): Promise<string | undefined> {
    return authorisingUser(this.#parts.engine, head, userId, this.#parts.serverName);
  }
}

function withReason(reason: string | undefined): JsonObject | undefined {
  return reason === undefined ? undefined : { reason };
}
