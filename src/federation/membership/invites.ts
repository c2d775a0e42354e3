import {
  forbidden,
  getRoomVersion,
  invalidParam,
  isUserId,
  type JsonObject,
  type JsonValue,
  MatrixError,
  type RoomEvent,
  receivePdu,
  serverOfUser,
  signEvent,
} from '../../protocol/index.ts';
import { readPrejoinState } from '../../room-federation/index.ts';
import type { HandshakeDeps } from './handshake-deps.ts';
import type { SubmittedEvent } from './submitted-events.ts';

/** An invite of a local user, submitted by another server. */
export interface SubmittedInvite extends SubmittedEvent {
  /** `undefined` in the v1 endpoint, which has no room version. */
  readonly roomVersion: string | undefined;
  /** Unverified stripped state of the room. */
  readonly inviteRoomState: readonly JsonValue[];
}

/** Accepts invites of local users from other servers. */
export class Invites {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * Checks and signs an invite, and notifies the user. If this server is in the room, the user is notified by
   * the invite event of the room instead.
   * Source: server-server API, `PUT /v2/invite/{roomId}/{eventId}`.
   * @returns the invite with the signature of this server
   * @throws MatrixError M_INCOMPATIBLE_ROOM_VERSION, M_INVALID_PARAM, M_FORBIDDEN, M_INVITE_BLOCKED, M_NOT_FOUND
   */
  async receive(origin: string, invite: SubmittedInvite): Promise<JsonObject> {
    const { checkInvite, engine, incoming, memberships, throttle, signer } = this.#deps;
    const { roomId, roomVersion = await this.#v1VersionOf(roomId) } = invite;
    const version = getRoomVersion(roomVersion);
    if (!version) throw incompatible(roomVersion);
    const { event, hashMatches } = receivePdu(invite.event, version);
    const userId = this.#check(origin, event, invite);
    if (!hashMatches) throw invalidParam('The content hash of the event is wrong');
    const isInRoom = await this.#checkRoom(origin, event, userId);
    await memberships.checkInvitee(event.sender, userId, roomId);
    const [verified] = await incoming.verify(version, [event.pdu]);
    if (!verified || 'error' in verified) throw invalidParam('The signature of the event is invalid');
    throttle.remoteInvite(roomId, userId);
    await checkInvite?.(verified.event, invite.inviteRoomState);
    const { state, problem } = await readPrejoinState(incoming, { roomId, version }, invite.inviteRoomState);
    if (problem !== undefined && version.roomId === 'create event') {
      throw invalidParam(`invite_room_state is invalid: ${problem}`);
    }
    const signed = signEvent(verified.event, signer);
    if (!isInRoom)
      await engine.placement.addOutOfBand({ roomId, version }, signed, { state, server: origin });
    // `unsigned` is not verified and not stored, but the response must have all fields of the request.
    const { unsigned } = invite.event;
    return unsigned === undefined ? signed.event.pdu : { ...signed.event.pdu, unsigned };
  }

  /** Checks that the event is an invite of a local user by a user of the other server. @returns the invited user */
  #check(origin: string, event: RoomEvent, { roomId, eventId }: SubmittedInvite): string {
    const { serverName } = this.#deps;
    if (event.eventId !== eventId) throw invalidParam('The event id does not match the event');
    if (event.roomId !== roomId) throw invalidParam('The event belongs to another room');
    if (event.type !== 'm.room.member' || event.content['membership'] !== 'invite') {
      throw invalidParam('The event is not an invite');
    }
    if (serverOfUser(event.sender) !== origin) throw invalidParam(`The sender is not a user of ${origin}`);
    const { stateKey } = event;
    if (!isUserId(stateKey) || serverOfUser(stateKey) !== serverName) {
      throw invalidParam('The invited user is not a user of this server');
    }
    return stateKey;
  }

  /** Returns the room version of an invite that names none: 1 or 2, whose events have the same format. */
  async #v1VersionOf(roomId: string): Promise<string> {
    const head = await this.#deps.engine.heads.get(roomId);
    return head?.isEntered && head.version.id === '2' ? '2' : '1';
  }

  /**
   * Checks the invite against the room. If this server has never been in the room, it knows only the version that the
   * invite states, which applies to this invite alone.
   * @returns whether this server is in the room
   */
  async #checkRoom(origin: string, { roomId, version }: RoomEvent, userId: string): Promise<boolean> {
    const { engine, serverAcls, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head?.isEntered) return false;
    if (head.version !== version) throw invalidParam('The room has another version');
    if (!head.servers.has(serverName)) return false;
    if (!(await serverAcls.allows(head, origin)))
      throw forbidden('The server ACL of this room denies your server');
    if (head.membership(userId) === 'join') throw forbidden(`${userId} is already in the room`);
    return true;
  }
}

const incompatible = (version: string) =>
  new MatrixError(400, 'M_INCOMPATIBLE_ROOM_VERSION', 'This server does not support the room version', {
    room_version: version,
  });
