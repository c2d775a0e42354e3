import { invalidParam, type JsonObject, notFound } from '../../protocol/index.ts';
import type { Rooms } from '../../rooms/index.ts';
import { describeRoom } from '../room-stats/room-description.ts';
import { maySeeSummary } from './room-access.ts';
import { summaryJson } from './summary-json.ts';

/** What rooms show of themselves to those who think about joining. Source: client-server API, "Room Summary API". */
export class RoomSummaries {
  readonly #rooms: Pick<Rooms, 'engine' | 'aliases'>;

  constructor(rooms: Pick<Rooms, 'engine' | 'aliases'>) {
    this.#rooms = rooms;
  }

  /**
   * @param userId absent for those who are not logged in
   * @throws MatrixError M_INVALID_PARAM; M_NOT_FOUND for unknown rooms and those that are none of the user's business
   */
  async summary(idOrAlias: string, userId: string | undefined): Promise<JsonObject> {
    const { engine } = this.#rooms;
    const roomId = await this.#roomId(idOrAlias);
    const head = await engine.heads.get(roomId);
    const room = head && (await describeRoom(engine, head));
    if (!room || !(await maySeeSummary(engine, head, room, userId))) throw notFound('Room not found');
    const membership = userId === undefined ? undefined : (head.membership(userId) ?? 'leave');
    return { ...summaryJson(room), ...(membership === undefined ? undefined : { membership }) };
  }

  async #roomId(idOrAlias: string): Promise<string> {
    if (idOrAlias.startsWith('!')) return idOrAlias;
    if (!idOrAlias.startsWith('#')) throw invalidParam('This is neither a room id nor an alias');
    return this.#rooms.aliases.resolve(idOrAlias);
  }
}
