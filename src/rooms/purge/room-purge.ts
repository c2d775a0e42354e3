import type { Database } from '../../kernel/database/index.ts';
import type { PurgedRoom, RoomRows, RoomTable } from '../../kernel/slices/index.ts';
import type { StreamWriter } from '../../kernel/streams/index.ts';
import type { RoomTables, RoomWriter } from '../../room-engine/index.ts';
import * as store from './store.ts';

export interface RoomPurgeDeps {
  readonly database: Database;
  /** The database of the state groups; by default `database`. */
  readonly stateDatabase?: Database;
  readonly streams: StreamWriter;
  readonly engine: RoomWriter;
  /** The rows that slices store for rooms. */
  readonly rows: readonly RoomRows[];
}

/** Maximum number of rows per transaction, so that other writers are not blocked for long. */
const rowsAtOnce = 1_000;

/** Maximum number of events per transaction. */
const eventsAtOnce = 200;

/** Maximum number of state groups per transaction. */
const groupsAtOnce = 100;

/**
 * Deletes rooms with their data in all slices. The number of transactions grows with the size of the room; after an
 * interruption, the next call continues.
 */
export class RoomPurge {
  readonly #deps: RoomPurgeDeps;

  constructor(deps: RoomPurgeDeps) {
    this.#deps = deps;
  }

  /** All tables with rows of rooms, for the test that finds tables that no slice declares. */
  get tables(): readonly RoomTable[] {
    return this.#deps.rows.flatMap(({ tables = [] }) => tables);
  }

  /**
   * Deletes a room. The room is unknown to local users from the start of the deletion. If the room has been deleted
   * before, and joined again since, only the rows that are left of the deleted room are deleted.
   * @param mayDelete whether the room may be deleted. Is called twice: before the room becomes unknown, so that a room
   * that must stay never becomes unknown, and again when the room can no longer change. Not called when an earlier call
   * has begun the deletion
   * @param deleted called after each deletion of events, with their number
   * @returns whether the room is deleted; false if `mayDelete` refuses
   * @throws the reason of `signal` when it aborts before the end
   */
  purge(
    room: PurgedRoom,
    mayDelete: () => Promise<boolean>,
    signal: AbortSignal,
    deleted: (events: number) => Promise<void> = async () => undefined,
  ): Promise<boolean> {
    return this.#deps.database.inBackground(() => this.#purge(room, mayDelete, signal, deleted));
  }

  async #purge(
    room: PurgedRoom,
    mayDelete: () => Promise<boolean>,
    signal: AbortSignal,
    deleted: (events: number) => Promise<void>,
  ): Promise<boolean> {
    const { database, streams, engine } = this.#deps;
    const { heads, removals } = engine;
    if ((await store.roomExists(database, room)) && !(await mayDelete())) return false;
    if (!(await store.hasSuccessor(database, room))) {
      heads.block(room.roomId);
      try {
        await engine.settled();
        // The room may have been joined again before it was blocked. It is then unblocked before rows are deleted.
        if (!(await store.hasSuccessor(database, room))) {
          if (await store.roomExists(database, room)) {
            if (!(await mayDelete())) return false;
            await streams.write<RoomTables, void>(async (writer, publish) => {
              await writer.deleteFrom('rooms').where('room_nid', '=', room.roomNid).execute();
              publish(removals, { kind: 'purged', ...room });
            });
          }
          await this.#deleteRows(room, signal, deleted, () => true);
          return true;
        }
      } finally {
        heads.unblock(room.roomId);
      }
    }
    await this.#deleteRows(room, signal, deleted, ({ holds }) => holds === 'room nid');
    return true;
  }

  /** Deletes the rows of a room in the tables that `includes` accepts, then its state groups and events. */
  async #deleteRows(
    room: PurgedRoom,
    signal: AbortSignal,
    deleted: (events: number) => Promise<void>,
    includes: (table: RoomTable) => boolean,
  ): Promise<void> {
    for (const table of this.tables) if (includes(table)) await this.#deleteTable(table, room, signal);
    await this.#deleteGroups(room, signal);
    await this.#deleteEvents(room, signal, deleted);
  }

  async #deleteTable(table: RoomTable, room: PurgedRoom, signal: AbortSignal): Promise<void> {
    const { database } = this.#deps;
    for (;;) {
      const rows = await store.someRows(database, table, room, rowsAtOnce);
      if (rows.length === 0) return;
      signal.throwIfAborted();
      await database.batch([store.deletionOf(table, rows)]);
    }
  }

  async #deleteGroups(room: PurgedRoom, signal: AbortSignal): Promise<void> {
    const { stateDatabase: database = this.#deps.database } = this.#deps;
    for (;;) {
      const ids = await store.someGroups(database, room, groupsAtOnce);
      if (ids.length === 0) return;
      signal.throwIfAborted();
      await database.transaction<RoomTables, void>((writer) => store.deleteGroups(writer, ids));
    }
  }

  async #deleteEvents(
    room: PurgedRoom,
    signal: AbortSignal,
    deleted: (events: number) => Promise<void>,
  ): Promise<void> {
    const { database, streams, engine, rows } = this.#deps;
    for (;;) {
      const nids = await store.someEvents(database, room, eventsAtOnce);
      if (nids.length === 0) return;
      signal.throwIfAborted();
      await streams.write<RoomTables, void>(async (writer, publish) => {
        for (const { deleteForEvents: deleteRows } of rows) await deleteRows?.(writer, nids, database);
        await writer.deleteFrom('events').where('nid', 'in', nids).execute();
        publish(engine.removals, { kind: 'pruned', eventNids: nids });
      });
      await deleted(nids.length);
    }
  }
}
