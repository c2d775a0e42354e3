import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** Number of users whose rooms are loaded before control returns to the event loop. */
const usersPerTurn = 500;

/** Finds the remote users who share a room with a local user: only the device lists of these users are stored. */
export class SharedRooms {
  readonly #engine: RoomReader;
  readonly #serverName: string;

  constructor(engine: RoomReader, serverName: string) {
    this.#engine = engine;
    this.#serverName = serverName;
  }

  /** Reports whether the user is joined to a room with a local user. */
  async isSharing(userId: string): Promise<boolean> {
    return (await this.usersSharing([userId])).has(userId);
  }

  /** Returns the users from the list who are joined to a room with a local user. */
  async usersSharing(userIds: readonly string[]): Promise<Set<string>> {
    const sharing = new Set<string>();
    const hasLocalUserById = new Map<string, boolean>();
    for (let start = 0; start < userIds.length; start += usersPerTurn) {
      if (start > 0) await new Promise(setImmediate);
      const batch = userIds.slice(start, start + usersPerTurn);
      for (const [userId, rooms] of await this.#engine.userRooms.joinedIds(batch)) {
        for (const roomId of rooms) {
          if (!hasLocalUserById.has(roomId)) hasLocalUserById.set(roomId, await this.#isLocalUserIn(roomId));
          if (!hasLocalUserById.get(roomId)) continue;
          sharing.add(userId);
          break;
        }
      }
    }
    return sharing;
  }

  /**
   * Loads the rooms of all local users, for background work on many users.
   * @returns a function that selects, from a list of users, the users who are joined to a room with a local user
   */
  async snapshot(): Promise<(userIds: readonly string[]) => Promise<Set<string>>> {
    const { userRooms } = this.#engine;
    const localRooms = await userRooms.joinedNidsOfServer(this.#serverName);
    return async (userIds) => {
      const rooms = await userRooms.joinedNids(userIds);
      return new Set(userIds.filter((userId) => rooms.get(userId)?.some((nid) => localRooms.has(nid))));
    };
  }

  /** Reports whether a local user is joined to the room. */
  hasLocalUser(head: RoomHead): boolean {
    return head.servers.has(this.#serverName);
  }

  async #isLocalUserIn(roomId: string): Promise<boolean> {
    const head = await this.#engine.heads.get(roomId);
    return head !== undefined && this.hasLocalUser(head);
  }
}
