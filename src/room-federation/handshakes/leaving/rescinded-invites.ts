import { parseUserId, type RoomVersion, type StrippedState, serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomWriter, UserRoom, VerifiedEvent } from '../../../room-engine/index.ts';

export interface RescindedInvitesDeps {
  readonly engine: Pick<RoomWriter, 'userRooms' | 'events' | 'placement'>;
  readonly serverName: string;
  /** The stripped state that a user received with an invite or a knock. */
  readonly strippedState: (roomId: string, userId: string) => Promise<readonly StrippedState[]>;
}

/**
 * Ends invites and knocks of local users in rooms that this server is not in, when a remote user kicks or
 * bans them. Authorization cannot be checked from outside the room, so servers that are related to the room
 * are trusted.
 */
export class RescindedInvites {
  readonly #deps: RescindedInvitesDeps;

  constructor(deps: RescindedInvitesDeps) {
    this.#deps = deps;
  }

  /**
   * The room version for reading membership events of a user: that of their invite or knock, since other
   * invites may have claimed another version.
   */
  async roomVersionFor({ roomId }: RoomHead, userId: string): Promise<RoomVersion | undefined> {
    const { engine, serverName } = this.#deps;
    if (parseUserId(userId)?.serverName !== serverName) return undefined;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return undefined;
    return (await engine.events.get(room.eventNid))?.event.version;
  }

  /**
   * Stores the leave or ban of an invited or knocking user. @returns whether it ended an invite or a knock
   */
  async apply(head: RoomHead, event: VerifiedEvent): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const { type, stateKey: userId, content, sender } = event.event;
    const isEnd = content['membership'] === 'leave' || content['membership'] === 'ban';
    if (type !== 'm.room.member' || userId === undefined || !isEnd) return false;
    if (parseUserId(userId)?.serverName !== serverName || serverOfUser(sender) === serverName) return false;
    const room = (await engine.userRooms.of(userId)).get(head.roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return false;
    if (!(await this.#trustedServers(head, userId, room)).has(serverOfUser(sender))) return false;
    const { version } = event.event;
    await engine.placement.addOutOfBand({ roomId: head.roomId, version }, event, { state: [] });
    return true;
  }

  /**
   * The trusted servers: the one that invited the user or accepted the knock, the senders of the stripped
   * state, and those that were in the room together with this server.
   */
  async #trustedServers(head: RoomHead, userId: string, room: UserRoom): Promise<Set<string>> {
    const { engine, strippedState } = this.#deps;
    const present = await engine.events.get(room.eventNid);
    const stripped = await strippedState(head.roomId, userId);
    const [last] = await engine.events.outOfBandServers(head.roomNid, userId, 1);
    const senders = [present?.event.sender, ...stripped.map((one) => one.sender)].map(serverOf);
    const named = last?.nid === room.eventNid ? [last.server] : [];
    return new Set([...senders, ...named, ...head.servers.keys()].filter((one) => one !== undefined));
  }
}

const serverOf = (userId: string | undefined) =>
  userId === undefined ? undefined : parseUserId(userId)?.serverName;
