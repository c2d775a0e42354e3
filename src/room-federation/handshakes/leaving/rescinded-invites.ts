import { parseUserId, type RoomVersion, type StrippedState, serverOfUser } from '../../../protocol/index.ts';
import type { RoomHead, RoomWriter, UserRoom, VerifiedEvent } from '../../../room-engine/index.ts';

export interface RescindedInvitesDeps {
  readonly engine: Pick<RoomWriter, 'userRooms' | 'events' | 'placement'>;
  readonly serverName: string;
  /** What a user was shown of a room with an invite or a knock. */
  readonly strippedState: (roomId: string, userId: string) => Promise<readonly StrippedState[]>;
}

/**
 * Ends invites and knocks of local users in rooms that this server is not in, when somebody there has removed or
 * banned them. Whether that was allowed can not be checked from outside: who has had to do with the room is believed.
 */
export class RescindedInvites {
  readonly #deps: RescindedInvitesDeps;

  constructor(deps: RescindedInvitesDeps) {
    this.#deps = deps;
  }

  /**
   * By which version events are read that may be about what a user is to a room: an invite has said it, and others may
   * have been told another one.
   */
  async roomVersionFor({ roomId }: RoomHead, userId: string): Promise<RoomVersion | undefined> {
    const { engine, serverName } = this.#deps;
    if (parseUserId(userId)?.serverName !== serverName) return undefined;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return undefined;
    return (await engine.events.get(room.eventNid))?.event.version;
  }

  /** @returns whether the event ended something */
  async apply(head: RoomHead, event: VerifiedEvent): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const { type, stateKey: userId, content, sender } = event.event;
    const isEnd = content['membership'] === 'leave' || content['membership'] === 'ban';
    if (type !== 'm.room.member' || userId === undefined || !isEnd) return false;
    if (parseUserId(userId)?.serverName !== serverName || serverOfUser(sender) === serverName) return false;
    const room = (await engine.userRooms.of(userId)).get(head.roomId);
    if (room?.membership !== 'invite' && room?.membership !== 'knock') return false;
    if (!(await this.#believed(head, userId, room)).has(serverOfUser(sender))) return false;
    const { version } = event.event;
    await engine.placement.addOutOfBand({ roomId: head.roomId, version }, event, { state: [] });
    return true;
  }

  /**
   * The server that has invited or taken the knock, those whose users' events described the room, and those that were
   * in it when this server was.
   */
  async #believed(head: RoomHead, userId: string, room: UserRoom): Promise<Set<string>> {
    const { engine, strippedState } = this.#deps;
    const present = await engine.events.get(room.eventNid);
    const shown = await strippedState(head.roomId, userId);
    const [last] = await engine.events.outOfBandServers(head.roomNid, userId, 1);
    const senders = [present?.event.sender, ...shown.map((one) => one.sender)].map(serverOf);
    const named = last?.nid === room.eventNid ? [last.server] : [];
    return new Set([...senders, ...named, ...head.servers.keys()].filter((one) => one !== undefined));
  }
}

const serverOf = (userId: string | undefined) =>
  userId === undefined ? undefined : parseUserId(userId)?.serverName;
