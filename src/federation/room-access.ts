import { forbidden, notFound } from '../protocol/index.ts';
import type { RoomHead, RoomReader, ServerAcls } from '../room-engine/index.ts';
import type { ServedHistory } from '../room-federation/index.ts';

export interface RoomAccessDeps {
  readonly engine: RoomReader;
  readonly serverAcls: ServerAcls;
  readonly serverName: string;
}

/** Checks whether another server may make requests about a room. */
export class RoomAccess {
  readonly #deps: RoomAccessDeps;

  constructor(deps: RoomAccessDeps) {
    this.#deps = deps;
  }

  /**
   * Returns a room that this server is in, if the room admits the other server.
   * @throws MatrixError M_NOT_FOUND when no local user is in the room; M_FORBIDDEN when the server ACL denies
   * the other server
   */
  async check(origin: string, roomId: string): Promise<RoomHead> {
    const head = await this.#deps.engine.heads.get(roomId);
    if (!head || !isInRoom(head, this.#deps.serverName)) throw notFound('This server is not in the room');
    await this.#checkAcl(head, origin);
    return head;
  }

  /**
   * Returns a room for requests that only servers in the room may make. After this server has left the room,
   * it still answers the servers that were in the room at that time: they may lack the last events, and possibly
   * no other server has these events.
   * @throws MatrixError as `check`, and M_FORBIDDEN when no user of the other server has joined the room
   */
  async checkInRoom(origin: string, roomId: string): Promise<RoomHead> {
    return this.#checkMember(origin, roomId, () => Promise.resolve(false));
  }

  /**
   * Like `checkInRoom`, and also accepts a server that was in the room when these events were sent. A server
   * that was unreachable when its users were removed must be able to read the events that led to the removal,
   * even if the users who removed them have left as well.
   */
  async checkInRoomAt(
    origin: string,
    roomId: string,
    eventIds: readonly string[],
    history: Pick<ServedHistory, 'wasJoined'>,
  ): Promise<RoomHead> {
    return this.#checkMember(origin, roomId, (head) => history.wasJoined(head, origin, eventIds));
  }

  /** @param isAllowedOutside whether a server that is not in the room may make the request */
  async #checkMember(
    origin: string,
    roomId: string,
    isAllowedOutside: (head: RoomHead) => Promise<boolean>,
  ): Promise<RoomHead> {
    const { engine, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (!head) throw notFound('This server is not in the room');
    const isAllowedByAcl = await this.#deps.serverAcls.allows(head, origin);
    if (isAllowedByAcl && (isInRoom(head, origin) || (await isAllowedOutside(head)))) return head;
    if (!isInRoom(head, serverName)) throw notFound('This server is not in the room');
    throw forbidden(
      isAllowedByAcl ? 'Your server is not in the room' : 'The server ACL of this room denies your server',
    );
  }

  async #checkAcl(head: RoomHead, origin: string): Promise<void> {
    if (!(await this.#deps.serverAcls.allows(head, origin)))
      throw forbidden('The server ACL of this room denies your server');
  }
}

/** Whether a user of the server has joined the room. */
export const isInRoom = (head: RoomHead, serverName: string): boolean => head.servers.has(serverName);
