import type { AnyWriter, Database } from '../database/index.ts';

/** A room to delete. */
export interface PurgedRoom {
  readonly roomId: string;
  /** The numeric id of the room in the database. */
  readonly roomNid: number;
}

/** A table whose rows refer to a room. */
export interface RoomTable {
  readonly table: string;
  /** The column that refers to the room. */
  readonly column: string;
  /** The kind of the values of `column`. */
  readonly holds: 'room id' | 'room nid';
  /** Columns of the primary key. */
  readonly key: readonly string[];
}

/** Rows in the tables of one slice that are deleted with their room. */
export interface RoomRows {
  readonly tables?: readonly RoomTable[];
  /**
   * Deletes rows that refer to events but not to the room. Called before the events are deleted, each time for at most
   * a few hundred events.
   * @param nids the numeric ids of the events in the database
   */
  readonly deleteForEvents?: (
    writer: AnyWriter,
    nids: readonly number[],
    database: Database,
  ) => Promise<void>;
}
