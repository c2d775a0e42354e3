import type { Database } from '../kernel/database/index.ts';
import type { RoomTables } from './tables.ts';

/** Which rooms are in the public directory. Source: client-server API, "Listing rooms". */
export class PublishedRooms {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async isPublished(roomId: string): Promise<boolean> {
    const row = await this.#database
      .reader<RoomTables>()
      .selectFrom('published_rooms')
      .select('room_id')
      .where('room_id', '=', roomId)
      .where('network', '=', '')
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Puts a room into the directory, or takes it out. */
  async set(roomId: string, isPublished: boolean): Promise<void> {
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      if (!isPublished) {
        await writer
          .deleteFrom('published_rooms')
          .where('room_id', '=', roomId)
          .where('network', '=', '')
          .execute();
        return;
      }
      await writer
        .insertInto('published_rooms')
        .values({ room_id: roomId, network: '' })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });
  }

  /** Publishes a room that was just made with `visibility: public`. */
  async publishNew(_creator: string, roomId: string, _alias: string | undefined): Promise<void> {
    await this.set(roomId, true);
  }
}
