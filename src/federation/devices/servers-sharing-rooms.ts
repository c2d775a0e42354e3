import type { RoomHead, RoomReader } from '../../room-engine/index.ts';

/** Knows the servers that are in a room with a local user. */
export class ServersSharingRooms {
  readonly #engine: RoomReader;
  readonly #serverName: string;

  constructor(engine: RoomReader, serverName: string) {
    this.#engine = engine;
    this.#serverName = serverName;
  }

  /** @param exceptRoom a room that does not count */
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

  /** The servers in a room. */
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
