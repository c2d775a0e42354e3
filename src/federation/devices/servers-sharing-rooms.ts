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
  async of(userId: string, exceptRoom?: string): Promise<Set<string>> {
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

  #add(servers: Set<string>, head: RoomHead): void {
    for (const server of head.servers.keys()) if (server !== this.#serverName) servers.add(server);
  }
}
