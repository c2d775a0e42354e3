import { forbidden, notFound } from '../protocol/index.ts';
import type { RoomHead, RoomReader, ServerAcls } from '../room-engine/index.ts';
import type { ServedHistory } from '../room-federation/index.ts';

export interface RoomAccessDeps {
  readonly engine: RoomReader;
  readonly serverAcls: ServerAcls;
  readonly serverName: string;
}

/** What every question of another server about a room goes through. */
export class RoomAccess {
  readonly #deps: RoomAccessDeps;

  constructor(deps: RoomAccessDeps) {
    this.#deps = deps;
  }

  /**
   * A room that this server is in, for a server that may take part in it.
   * @throws MatrixError M_NOT_FOUND when no user of this server is in such a room, M_FORBIDDEN where the room's server
   * ACLs deny the other server
   */
  async check(origin: string, roomId: string): Promise<RoomHead> {
    const head = await this.#deps.engine.heads.get(roomId);
    if (!head || !isInRoom(head, this.#deps.serverName)) throw notFound('This server is not in the room');
    await this.#checkAcl(head, origin);
    return head;
  }

  /**
   * A room of which something is to be told that is only for servers which are in it. When this server has left, it
   * still tells those that were there then: they may lack the last events, and have nobody else to ask.
   * @throws MatrixError as `check`, also M_FORBIDDEN when no user of the other server has joined the room
   */
  async checkInRoom(origin: string, roomId: string): Promise<RoomHead> {
    return this.#checkMember(origin, roomId, () => Promise.resolve(false));
  }

  /**
   * As `checkInRoom`, and also for a server that was in the room when these events were sent. One that was away when
   * its users were removed has to read what led to that, or it would never know; nor would it if those who removed them
   * have left as well.
   */
  async checkInRoomAt(
    origin: string,
    roomId: string,
    eventIds: readonly string[],
    history: Pick<ServedHistory, 'wasJoined'>,
  ): Promise<RoomHead> {
    return this.#checkMember(origin, roomId, (head) => history.wasJoined(head, origin, eventIds));
  }

  /** @param mayAsk of a server that is not in the room now */
  async #checkMember(
    origin: string,
    roomId: string,
    mayAsk: (head: RoomHead) => Promise<boolean>,
  ): Promise<RoomHead> {
    const { engine, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head) throw notFound('This server is not in the room');
    const isAdmitted = await this.#deps.serverAcls.allows(head, origin);
    if (isAdmitted && (isInRoom(head, origin) || (await mayAsk(head)))) return head;
    if (!isInRoom(head, serverName)) throw notFound('This server is not in the room');
    throw forbidden(isAdmitted ? 'Your server is not in the room' : 'This room does not admit your server');
  }

  async #checkAcl(head: RoomHead, origin: string): Promise<void> {
    if (!(await this.#deps.serverAcls.allows(head, origin)))
      throw forbidden('This room does not admit your server');
  }
}

/** Whether a user of the server has joined the room. */
export const isInRoom = (head: RoomHead, serverName: string): boolean => head.servers.has(serverName);
