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

/** An invite of a user of this server as another server hands it in. */
export interface SubmittedInvite extends SubmittedEvent {
  /** `undefined` where the other server does not say it, in the older way of inviting. */
  readonly roomVersion: string | undefined;
  /** What the other server says of the room. */
  readonly inviteRoomState: readonly JsonValue[];
}

/** Takes the invites of users of this server by users of others. */
export class Invites {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * Checks an invite, signs it, and tells the user, unless this server is in the room: then it comes again, as an
   * event of the room.
   * Source: server-server API, `PUT /v2/invite/{roomId}/{eventId}`.
   * @returns the invite with the signature of this server
   * @throws MatrixError M_INCOMPATIBLE_ROOM_VERSION, M_INVALID_PARAM, M_FORBIDDEN, M_INVITE_BLOCKED, M_NOT_FOUND
   */
  async receive(origin: string, invite: SubmittedInvite): Promise<JsonObject> {
    const { engine, incoming, memberships, throttle, signer } = this.#deps;
    const { roomId, roomVersion = await this.#oldVersionOf(roomId) } = invite;
    const version = getRoomVersion(roomVersion);
    if (!version) throw incompatible(roomVersion);
    const { event, hashMatches } = receivePdu(invite.event, version);
    const userId = this.#check(origin, event, invite);
    if (!hashMatches) throw invalidParam('The hash of the event is wrong');
    const isHere = await this.#checkRoom(origin, event, userId);
    await memberships.checkInvitee(event.sender, userId);
    const [verified] = await incoming.verify(version, [event.pdu]);
    if (!verified || 'error' in verified) throw invalidParam('The event is not rightly signed');
    throttle.inviteByOther(roomId, userId);
    const { state, problem } = await readPrejoinState(incoming, { roomId, version }, invite.inviteRoomState);
    if (problem !== undefined && version.roomId === 'create event') {
      throw invalidParam(`invite_room_state is not as it should be: ${problem}`);
    }
    const signed = signEvent(verified.event, signer);
    if (!isHere) await engine.placement.addOutOfBand({ roomId, version }, signed, { state, server: origin });
    // Nothing vouches for it, so it is not kept; but all fields are to come back untouched.
    const { unsigned } = invite.event;
    return unsigned === undefined ? signed.event.pdu : { ...signed.event.pdu, unsigned };
  }

  /** Signs nothing that is no invite of a local user by a user of the other server. @returns who is invited */
  #check(origin: string, event: RoomEvent, { roomId, eventId }: SubmittedInvite): string {
    const { serverName } = this.#deps;
    if (event.eventId !== eventId) throw invalidParam('The event has another id');
    if (event.roomId !== roomId) throw invalidParam('The event is of another room');
    if (event.type !== 'm.room.member' || event.content['membership'] !== 'invite') {
      throw invalidParam('This is no invite');
    }
    if (serverOfUser(event.sender) !== origin) throw invalidParam(`The sender is no user of ${origin}`);
    const { stateKey } = event;
    if (!isUserId(stateKey) || serverOfUser(stateKey) !== serverName) {
      throw invalidParam('The invited user is of another server');
    }
    return stateKey;
  }

  /** Rooms whose version nobody says are of version 1 or 2, whose events look the same. */
  async #oldVersionOf(roomId: string): Promise<string> {
    const head = await this.#deps.engine.heads.get(roomId);
    return head?.isEntered && head.version.id === '2' ? '2' : '1';
  }

  /**
   * Of which version a room is that this server has not been in, others may say differently: each is believed as far as
   * their own invite goes.
   * @returns whether this server is in the room
   */
  async #checkRoom(origin: string, { roomId, version }: RoomEvent, userId: string): Promise<boolean> {
    const { engine, serverAcls, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head?.isEntered) return false;
    if (head.version !== version) throw invalidParam('The room has another version');
    if (!head.servers.has(serverName)) return false;
    if (!(await serverAcls.allows(head, origin))) throw forbidden('This room does not admit your server');
    if (head.membership(userId) === 'join') throw forbidden(`${userId} is in the room`);
    return true;
  }
}

const incompatible = (version: string) =>
  new MatrixError(400, 'M_INCOMPATIBLE_ROOM_VERSION', 'This room version is not known here', {
    room_version: version,
  });
