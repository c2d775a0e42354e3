import { serverOfUser } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** Finds the servers that share rooms with a local user. */
export class ServersSharingRooms {
  readonly #engine: RoomReader;
  readonly #serverName: string;

  constructor(engine: RoomReader, serverName: string) {
    this.#engine = engine;
    this.#serverName = serverName;
  }

  /** Returns the other servers in the user's rooms. @param exceptRoom a room to leave out */
  async sharedWith(userId: string, exceptRoom?: string): Promise<Set<string>> {
    const servers = new Set<string>();
    const { heads, userRooms } = this.#engine;
    for (const roomId of await userRooms.withMembership(userId, 'join')) {
      if (roomId === exceptRoom) continue;
      const head = await heads.get(roomId);
      if (head) this.#add(servers, head);
    }
    return servers;
  }

  /** Returns the other servers in a room. */
  async inRoom(roomId: string): Promise<Set<string>> {
    const servers = new Set<string>();
    const head = await this.#engine.heads.get(roomId);
    if (head) this.#add(servers, head);
    return servers;
  }

  /**
   * Returns the other servers in a room that the response to the join did not name, once the partial state of the room
   * has become complete. Includes servers that left the room before the state was complete.
   */
  async unnamedAtJoin(roomId: string): Promise<Set<string>> {
    const head = await this.#engine.heads.get(roomId);
    const servers = await this.inRoom(roomId);
    if (!head?.formerPartial) return new Set();
    const { joinedAt, servers: known } = head.formerPartial;
    for (const [userId, membership] of head.members) {
      const { stream = 0 } = head.entry('m.room.member', userId) ?? {};
      const hasLeft = membership !== 'join' && stream > joinedAt && stream < head.completedAt;
      const server = serverOfUser(userId);
      if (hasLeft && server !== this.#serverName) servers.add(server);
    }
    for (const server of known) servers.delete(server);
    return servers;
  }

  /** Returns the joined local users of a room. */
  async localUsersOf(roomId: string): Promise<string[]> {
    const members = [...((await this.#engine.heads.get(roomId))?.members ?? [])];
    return members
      .filter(([userId, membership]) => membership === 'join' && serverOfUser(userId) === this.#serverName)
      .map(([userId]) => userId);
  }

  #add(servers: Set<string>, head: RoomHead): void {
    for (const server of head.servers.keys()) if (server !== this.#serverName) servers.add(server);
  }
}
