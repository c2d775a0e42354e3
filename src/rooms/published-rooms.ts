import type { Database } from '../kernel/database/index.ts';
import { MatrixError } from '../protocol/index.ts';
import type { RoomTables } from '../room-engine/index.ts';
import type { DirectoryRules, RoomAliases } from './aliases/room-aliases.ts';

/** Rooms in the public room directory. Source: client-server API, "Published room directory". */
export class PublishedRooms {
  readonly #database: Database;
  readonly #aliases: RoomAliases;
  readonly #rules: DirectoryRules;

  constructor(database: Database, aliases: RoomAliases, rules: DirectoryRules) {
    this.#database = database;
    this.#aliases = aliases;
    this.#rules = rules;
  }

  /** Whether the room is in the server's own list. */
  isPublished(roomId: string): Promise<boolean> {
    return isPublished(this.#database, roomId);
  }

  /** Whether the operator's rules allow the user to publish the room. */
  async mayPublish(userId: string, roomId: string): Promise<boolean> {
    return this.#rules.mayPublish(userId, roomId, await this.#aliases.of(roomId));
  }

  /** Checks a change of the directory by the rules of modules. @throws MatrixError when a module refuses it */
  async checkVisibility(roomId: string, isPublic: boolean): Promise<void> {
    await this.#rules.checkVisibility?.(roomId, isPublic);
  }

  /**
   * Publishes a room, or removes it from the directory.
   * @param network list of an application service; by default the server's own list
   */
  async set(roomId: string, isPublished: boolean, network = ''): Promise<void> {
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      if (!isPublished) {
        await writer
          .deleteFrom('published_rooms')
          .where('room_id', '=', roomId)
          .where('network', '=', network)
          .execute();
        return;
      }
      await writer
        .insertInto('published_rooms')
        .values({ room_id: roomId, network })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });
  }

  /** Moves the entry of a room in the server's own list, if it has one, to another room. */
  async move(roomId: string, toRoomId: string): Promise<void> {
    if (!(await this.isPublished(roomId))) return;
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      const { numDeletedRows } = await writer
        .deleteFrom('published_rooms')
        .where('room_id', '=', roomId)
        .where('network', '=', '')
        .executeTakeFirst();
      if (numDeletedRows === 0n) return;
      await writer
        .insertInto('published_rooms')
        .values({ room_id: toRoomId, network: '' })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });
  }

  /** Publishes a new room with `visibility: public`, if the rules allow it. */
  async publishNew(creator: string, roomId: string): Promise<void> {
    if (!(await this.mayPublish(creator, roomId))) return;
    const denial = await this.checkVisibility(roomId, true).then(() => undefined, asMatrixError);
    if (denial === undefined) await this.set(roomId, true);
  }

  /**
   * Returns a subquery for the ids of the rooms in a list.
   * @param network list of an application service; empty: the server's own list; absent: all lists
   */
  roomIds(network: string | undefined) {
    const query = this.#database.reader<RoomTables>().selectFrom('published_rooms').select('room_id');
    return network === undefined ? query : query.where('network', '=', network);
  }
}

/** Returns an error that is a `MatrixError`, as rules throw it; throws every other error. */
function asMatrixError(error: unknown): MatrixError {
  if (error instanceof MatrixError) return error;
  throw error;
}

/** Returns whether a room is in the server's own list of public rooms. */
export async function isPublished(database: Database, roomId: string): Promise<boolean> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('published_rooms')
    .select('room_id')
    .where('room_id', '=', roomId)
    .where('network', '=', '')
    .executeTakeFirst();
  return row !== undefined;
}
