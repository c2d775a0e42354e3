import type { RoomReader, UserRoom } from '../../../room-engine/index.ts';
import type { KicksAndBans } from '../../kicks-and-bans.ts';
import type { ShownInvites } from '../../shown-invites.ts';
import { type SentRoom, sentUpTo } from '../connections/sent-room.ts';
import type { RoomActivity } from '../rooms/room-activity.ts';

export interface RoomListDeps {
  readonly engine: RoomReader;
  readonly activity: RoomActivity;
  readonly kicksAndBans: KicksAndBans;
  readonly shownInvites: ShownInvites;
  /** Rooms that are left out of every sync (`exclude_rooms_from_sync`). */
  readonly excludedRooms: ReadonlySet<string>;
}

/** The rooms of users in the order of their activity. Source: MSC4186, "Lists". */
export class RoomList {
  readonly #deps: RoomListDeps;

  constructor(deps: RoomListDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the rooms that a client may receive, the most recently active first: rooms that the user is joined to,
   * invited to or knocks on, rooms that other users have removed the user from, and rooms that the user has left since
   * the client was sent them.
   * @param sent the parts of rooms that the client was sent up to `since`, by room nid
   */
  async of(
    userId: string,
    sent: ReadonlyMap<number, SentRoom>,
    since: number | undefined,
  ): Promise<UserRoom[]> {
    const { engine, activity, excludedRooms } = this.#deps;
    const all = [...(await engine.userRooms.of(userId)).values()].filter(
      ({ roomId }) => !excludedRooms.has(roomId),
    );
    const rooms: UserRoom[] = [];
    for (const room of all) {
      if (room.membership === 'join' || (await this.#isListed(userId, room, sent.get(room.roomNid), since)))
        rooms.push(room);
    }
    const joined = rooms.filter(({ membership }) => membership === 'join');
    const latest = await activity.latest(joined);
    const positionOf = (room: UserRoom) => latest.get(room.roomNid) ?? room.stream;
    return rooms.sort((a, b) => positionOf(b) - positionOf(a));
  }

  /** Whether a room that the user is not joined to is listed. */
  async #isListed(
    userId: string,
    room: UserRoom,
    sent: SentRoom | undefined,
    since: number | undefined,
  ): Promise<boolean> {
    const { membership } = room;
    if (membership === 'knock') return true;
    if (membership === 'invite') return this.#deps.shownInvites.isShown(userId, room);
    if (sent && room.stream > (sentUpTo(sent.timeline, since) ?? 0)) return true;
    return !room.forgotten && this.#deps.kicksAndBans.wasRemoved(userId, room);
  }
}
