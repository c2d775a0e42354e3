import { type AnyWriter, afterCommit, type Database, writerFor } from '../../kernel/database/index.ts';
import { forbidden } from '../../protocol/index.ts';
import type { RoomTables } from '../../room-engine/index.ts';

/**
 * The rooms that administrators have blocked: local users cannot join them, knock on them or be invited to them. All
 * of them are in memory, because they are few, so that a join needs no query. A room may be blocked before this server
 * knows it, and stays blocked when it is deleted.
 */
export class BlockedRooms {
  readonly #database: Database;
  /** The user ids of the administrators who have blocked rooms, by room id. */
  readonly #administrators: Map<string, string>;

  private constructor(database: Database, administrators: Map<string, string>) {
    this.#database = database;
    this.#administrators = administrators;
  }

  /** Loads all blocked rooms. */
  static async open(database: Database): Promise<BlockedRooms> {
    const rows = await database.reader<RoomTables>().selectFrom('blocked_rooms').selectAll().execute();
    return new BlockedRooms(database, new Map(rows.map((row) => [row.room_id, row.blocked_by])));
  }

  /** Returns the administrator who has blocked a room; `undefined` for rooms that are not blocked. */
  blockedBy(roomId: string): string | undefined {
    return this.#administrators.get(roomId);
  }

  /** Refuses blocked rooms. @throws MatrixError M_FORBIDDEN */
  check(roomId: string): void {
    if (this.#administrators.has(roomId)) throw forbidden('This room has been blocked on this server');
  }

  /** Blocks a room. A room that is blocked already keeps the administrator who blocked it first. */
  async block(roomId: string, administrator: string): Promise<void> {
    await this.#database.transaction((writer) => this.blockIn(writer, roomId, administrator));
  }

  /** Blocks a room in a transaction, and refuses joins from its commit on. */
  async blockIn(writer: AnyWriter, roomId: string, administrator: string): Promise<void> {
    afterCommit(writer, () => {
      if (!this.#administrators.has(roomId)) this.#administrators.set(roomId, administrator);
    });
    await writerFor<RoomTables>(writer)
      .insertInto('blocked_rooms')
      .values({ room_id: roomId, blocked_by: administrator })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }

  /** Unblocks a room; does nothing for a room that is not blocked. */
  async unblock(roomId: string): Promise<void> {
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      await writer.deleteFrom('blocked_rooms').where('room_id', '=', roomId).execute();
    });
    this.#administrators.delete(roomId);
  }
}
