import { invalidParam, type JsonObject, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import { describeRoom } from '../room-stats/room-description.ts';
import type { RemoteRooms } from './remote-rooms.ts';
import { maySeeRemote, maySeeSummary } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

/** What rooms show of themselves to those who think about joining. Source: client-server API, "Room Summary API". */
export class RoomSummaries {
  readonly #engine: RoomReader;
  readonly #aliases: Rooms['aliases'];
  readonly #serverName: string;
  readonly #remote: RemoteRooms;

  constructor(parts: Pick<Rooms, 'engine' | 'aliases'> & { serverName: string; remote: RemoteRooms }) {
    this.#engine = parts.engine;
    this.#aliases = parts.aliases;
    this.#serverName = parts.serverName;
    this.#remote = parts.remote;
  }

  /**
   * @param userId absent for those who are not logged in
   * @param via servers that are asked when this one is not in the room
   * @throws MatrixError M_INVALID_PARAM; M_NOT_FOUND for unknown rooms and those that are none of the user's business
   */
  async summary(
    idOrAlias: string,
    userId: string | undefined,
    via: readonly string[] = [],
  ): Promise<JsonObject> {
    const engine = this.#engine;
    const { roomId, servers } = await this.#locate(idOrAlias);
    const head = await this.#head(roomId);
    const room = head
      ? await describeRoom(engine, head)
      : (await this.#remote.tree(roomId, [...via, ...servers]))?.room;
    const maySee =
      head && room ? maySeeSummary(engine, head, room, userId) : room && maySeeRemote(engine, room, userId);
    if (!room || !(await maySee)) throw notFound('Room not found');
    if (userId === undefined) return summaryJson(room);
    const membership = (await engine.userRooms.of(userId)).get(roomId)?.membership ?? 'leave';
    return { ...summaryJson(room), membership };
  }

  async #locate(idOrAlias: string): Promise<{ roomId: string; servers: readonly string[] }> {
    if (idOrAlias.startsWith('!')) return { roomId: idOrAlias, servers: [] };
    if (!idOrAlias.startsWith('#')) throw invalidParam('This is neither a room id nor an alias');
    return this.#aliases.locate(idOrAlias);
  }

  /** Of a room that this server is in: what it knows of others may have changed long ago. */
  async #head(roomId: string): Promise<RoomHead | undefined> {
    const head = await this.#engine.heads.get(roomId);
    return head?.servers.has(this.#serverName) ? head : undefined;
  }
}
