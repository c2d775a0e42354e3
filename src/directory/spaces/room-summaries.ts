import { invalidParam, type JsonObject, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import { describeRoom } from '../room-stats/room-description.ts';
import type { RemoteRooms } from './remote-rooms.ts';
import { maySeeRemote, maySeeSummary } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

/** Summaries of rooms for users who consider joining. Source: client-server API, "Room Summary API". */
export class RoomSummaries {
  readonly #engine: RoomReader;
  readonly #aliases: Rooms['aliases'];
  readonly #serverName: string;
  readonly #remote: RemoteRooms;

  constructor(deps: Pick<Rooms, 'engine' | 'aliases'> & { serverName: string; remote: RemoteRooms }) {
    this.#engine = deps.engine;
    this.#aliases = deps.aliases;
    this.#serverName = deps.serverName;
    this.#remote = deps.remote;
  }

  /**
   * Returns the summary of a room.
   * @param userId absent for unauthenticated requests
   * @param via servers that receive a request when this server is not joined to the room
   * @throws MatrixError M_INVALID_PARAM; M_NOT_FOUND for unknown rooms and rooms that the user may not see
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
    if (!idOrAlias.startsWith('#')) throw invalidParam('Expected a room id or an alias');
    return this.#aliases.locate(idOrAlias);
  }

  /** Returns a room if it has local members, because the stored state of other rooms may be outdated. */
  async #head(roomId: string): Promise<RoomHead | undefined> {
    const head = await this.#engine.heads.get(roomId);
    return head?.servers.has(this.#serverName) ? head : undefined;
  }
}
