import { parseUserId, type RoomVersion, type StrippedState, serverOfUser } from '../../../protocol/index.ts';
import type {
  RoomHead,
  RoomWriter,
  StoredEvent,
  UserRoom,
  VerifiedEvent,
} from '../../../room-engine/index.ts';
import type { InviteChecks } from './invite-check.ts';

export interface RescindedInvitesDeps {
  readonly engine: Pick<RoomWriter, 'userRooms' | 'events' | 'placement'>;
  readonly serverName: string;
  /** The stripped state that a user received with an invite or a knock. */
  readonly strippedState: (roomId: string, userId: string) => Promise<readonly StrippedState[]>;
  /** Absent when only the inviter can end an invite. */
  readonly checks?: Pick<InviteChecks, 'begin'> | undefined;
}

/**
 * Ends invites and knocks of local users in rooms that this server is not in, when a remote user kicks or bans them.
 * Authorization cannot be checked from outside the room. So an invite is ended by its sender, or when the server that
 * sent the invite confirms that the room no longer has it; for knocks, servers that are related to the room are trusted
 * (decision 0116).
 */
export class RescindedInvites {
  readonly #deps: RescindedInvitesDeps;

  constructor(deps: RescindedInvitesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the room version for reading membership events of a user: the version of the user's invite or knock, since
   * other invites may have claimed another version; `undefined` for users with neither, and for remote users.
   */
  async roomVersionFor({ roomId }: RoomHead, userId: string): Promise<RoomVersion | undefined> {
    const { engine, serverName } = this.#deps;
    if (parseUserId(userId)?.serverName !== serverName) return undefined;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return undefined;
    return (await engine.events.get(room.eventNid))?.event.version;
  }

  /**
   * Stores the leave or ban of an invited or knocking user.
   * @returns whether it ended an invite or a knock; `false` if a request to another server must confirm it first
   */
  async apply(head: RoomHead, event: VerifiedEvent): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const { type, stateKey: userId, content, sender } = event.event;
    const isLeaveOrBan = content['membership'] === 'leave' || content['membership'] === 'ban';
    if (type !== 'm.room.member' || userId === undefined || !isLeaveOrBan) return false;
    if (parseUserId(userId)?.serverName !== serverName || serverOfUser(sender) === serverName) return false;
    const room = (await engine.userRooms.of(userId)).get(head.roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return false;
    const stored = await engine.events.get(room.eventNid);
    if (room.membership === 'invite') {
      if (stored?.event.sender !== sender) {
        if (stored) await this.#applyIfConfirmed(head, event, stored);
        return false;
      }
    } else if (!(await this.#trustedServers(head, userId, room, stored)).has(serverOfUser(sender))) {
      return false;
    }
    await this.#store(event);
    return true;
  }

  #store(event: VerifiedEvent): Promise<unknown> {
    const { roomId, version } = event.event;
    return this.#deps.engine.placement.addOutOfBand({ roomId, version }, event, { state: [] });
  }

  /** Stores the leave or ban once a server that sent the invite confirms that the invite is over. */
  async #applyIfConfirmed({ roomNid }: RoomHead, event: VerifiedEvent, invite: StoredEvent): Promise<void> {
    const { engine, checks, serverName } = this.#deps;
    const { roomId, stateKey: userId = '', sender } = invite.event;
    const [last] = await engine.events.outOfBandServers(roomNid, userId, 1);
    const inviters = [serverOfUser(sender), ...(last?.nid === invite.nid ? [last.server] : [])];
    const servers = [...new Set(inviters)].filter((server) => server !== serverName);
    await checks?.begin({ roomId, userId, invite: invite.nid, servers }, event);
  }

  /**
   * The servers whose users can end a knock: the server that received the knock, the servers of the senders of the
   * stripped state, and servers that were in the room together with this server.
   */
  async #trustedServers(
    head: RoomHead,
    userId: string,
    room: UserRoom,
    stored: StoredEvent | undefined,
  ): Promise<Set<string>> {
    const { engine, strippedState } = this.#deps;
    const stripped = await strippedState(head.roomId, userId);
    const [last] = await engine.events.outOfBandServers(head.roomNid, userId, 1);
    const senders = [stored?.event.sender, ...stripped.map(({ sender }) => sender)].map(serverOf);
    const acceptedBy = last?.nid === room.eventNid ? [last.server] : [];
    return new Set(
      [...senders, ...acceptedBy, ...head.servers.keys()].filter((server) => server !== undefined),
    );
  }
}

const serverOf = (userId: string | undefined) =>
  userId === undefined ? undefined : parseUserId(userId)?.serverName;
