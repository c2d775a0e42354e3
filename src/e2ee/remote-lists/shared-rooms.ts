import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** How many users' rooms are looked up before other requests get their turn. */
const usersAtOnce = 500;

/** Knows which users of other servers are in a room with a user of this one: theirs are the devices that matter. */
export class SharedRooms {
  readonly #engine: RoomReader;
  readonly #serverName: string;

  constructor(engine: RoomReader, serverName: string) {
    this.#engine = engine;
    this.#serverName = serverName;
  }

  async isSharing(userId: string): Promise<boolean> {
    return (await this.usersSharing([userId])).has(userId);
  }

  /** Those of the users who are in a room with a local user now. */
  async usersSharing(userIds: readonly string[]): Promise<Set<string>> {
    const sharing = new Set<string>();
    const ours = new Map<string, boolean>();
    for (let start = 0; start < userIds.length; start += usersAtOnce) {
      if (start > 0) await new Promise(setImmediate);
      const some = userIds.slice(start, start + usersAtOnce);
      for (const [userId, rooms] of await this.#engine.userRooms.joinedIds(some)) {
        for (const roomId of rooms) {
          if (!ours.has(roomId)) ours.set(roomId, await this.#isLocalUserIn(roomId));
          if (!ours.get(roomId)) continue;
          sharing.add(userId);
          break;
        }
      }
    }
    return sharing;
  }

  /**
   * `of` for all that there are, as it is now: for work that nobody waits for.
   * @returns picks those who share a room out of some users
   */
  async snapshot(): Promise<(userIds: readonly string[]) => Promise<Set<string>>> {
    const { userRooms } = this.#engine;
    const ours = await userRooms.joinedNidsOfServer(this.#serverName);
    return async (userIds) => {
      const rooms = await userRooms.joinedNids(userIds);
      return new Set(userIds.filter((userId) => rooms.get(userId)?.some((nid) => ours.has(nid))));
    };
  }

  /** Whether a user of this server is in the room. */
  hasLocalUser(head: RoomHead): boolean {
    return head.servers.has(this.#serverName);
  }

  async #isLocalUserIn(roomId: string): Promise<boolean> {
    const head = await this.#engine.heads.get(roomId);
    return head !== undefined && this.hasLocalUser(head);
  }
}
