import type { AnyWriter } from '../../kernel/database/index.ts';

/** A room to delete. */
export interface PurgedRoom {
  readonly roomId: string;
  readonly roomNid: number;
}

/** A table whose rows refer to a room. */
export interface RoomTable {
  readonly table: string;
  /** The column with the reference, and what it contains. */
  readonly column: string;
  readonly holds: 'room id' | 'room nid';
  /** Columns of the primary key. */
  readonly key: readonly string[];
}

/**
 * Rows of rooms in the tables of one slice, which are deleted with the room. Each slice declares its own;
 * they are collected at composition, and a test finds tables that no slice declares.
 */
export interface RoomRows {
  readonly tables?: readonly RoomTable[];
  /**
   * Deletes rows that refer to events only; called for up to a few hundred events, before the events
   * themselves are deleted.
   */
  readonly deleteForEvents?: (writer: AnyWriter, nids: readonly number[]) => Promise<void>;
  /** Called when all rows are deleted: clears memory. */
  readonly onPurged?: (room: PurgedRoom) => void;
}
