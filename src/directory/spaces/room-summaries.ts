import { invalidParam, type JsonObject, notFound } from '../../protocol/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import { describeRoom } from '../room-stats/room-description.ts';
import type { RemoteRooms } from './remote-rooms.ts';
import { maySeeRemote, maySeeSummary } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

/** What rooms show of themselves to those who think about joining. Source: client-server API, "Room Summary API". */
export class RoomSummaries {
  readonly #rooms: Pick<Rooms, 'engine' | 'aliases'>;

  readonly #remote: RemoteRooms;

  constructor(rooms: Pick<Rooms, 'engine' | 'aliases'>, remote: RemoteRooms) {
    this.#rooms = rooms;
    this.#remote = remote;
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
    const { engine } = this.#rooms;
    const roomId = await this.#roomId(idOrAlias);
    const head = await engine.heads.get(roomId);
    const room = head ? await describeRoom(engine, head) : (await this.#remote.tree(roomId, via))?.room;
    const maySee =
      head && room ? maySeeSummary(engine, head, room, userId) : room && maySeeRemote(engine, room, userId);
    if (!room || !(await maySee)) throw notFound('Room not found');
    if (userId === undefined) return summaryJson(room);
    const membership = (await engine.userRooms.of(userId)).get(roomId)?.membership ?? 'leave';
    return { ...summaryJson(room), membership };
  }

  async #roomId(idOrAlias: string): Promise<string> {
    if (idOrAlias.startsWith('!')) return idOrAlias;
    if (!idOrAlias.startsWith('#')) throw invalidParam('This is neither a room id nor an alias');
    return this.#rooms.aliases.resolve(idOrAlias);
  }
}
