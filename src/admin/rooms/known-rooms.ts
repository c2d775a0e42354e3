import { invalidParam, isRoomId, notFound } from '../../protocol/index.ts';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import type { RoomAliases } from '../../rooms/index.ts';

/** Finds the rooms that requests name. */
export class KnownRooms {
  readonly #engine: Pick<RoomReader, 'heads'>;
  readonly #aliases: Pick<RoomAliases, 'locate'>;

  constructor(deps: { readonly engine: Pick<RoomReader, 'heads'>; readonly aliases: RoomAliases }) {
    this.#engine = deps.engine;
    this.#aliases = deps.aliases;
  }

  /** Returns the head of a room. @throws MatrixError M_NOT_FOUND for rooms that this server does not know */
  async get(roomId: string): Promise<RoomHead> {
    const head = await this.find(roomId);
    if (!head) throw notFound('Room not found');
    return head;
  }

  /** Returns the head of a room; `undefined` for rooms that this server does not know. */
  async find(roomId: string): Promise<RoomHead | undefined> {
    return this.#engine.heads.get(roomId);
  }

  /**
   * Returns the head of the room with an id or an alias.
   * @throws MatrixError M_NOT_FOUND for an unknown alias or room, M_INVALID_PARAM for an invalid alias
   */
  async named(idOrAlias: string): Promise<RoomHead> {
    return this.get((await this.locate(idOrAlias)).roomId);
  }

  /**
   * Resolves an alias to a room id and to servers that are in the room. Returns a room id as it is, without servers.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM
   */
  async locate(idOrAlias: string): Promise<{ readonly roomId: string; readonly servers: readonly string[] }> {
    if (isRoomId(idOrAlias)) return { roomId: idOrAlias, servers: [] };
    return this.#aliases.locate(idOrAlias);
  }
}

/** Checks the form of a room id. @throws MatrixError M_INVALID_PARAM */
export function checkRoomId(roomId: string): void {
  if (!isRoomId(roomId) || roomId.includes('\0')) throw invalidParam('The room id is not valid');
}
