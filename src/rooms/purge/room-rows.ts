import type { AnyWriter } from '../../kernel/database/index.ts';

/** A room that is deleted. */
export interface PurgedRoom {
  readonly roomId: string;
  readonly roomNid: number;
}

/** A table whose rows name a room. */
export interface RoomTable {
  readonly table: string;
  /** The column that names it, and by what. */
  readonly column: string;
  readonly holds: 'room id' | 'room nid';
  /** Columns that together name one row. */
  readonly key: readonly string[];
}

/**
 * What a slice keeps of rooms, so that it goes when a room is deleted. Each slice says it of its own tables; they are
 * put together at composition, and a test finds tables that nobody speaks for.
 */
export interface RoomRows {
  readonly tables?: readonly RoomTable[];
  /** Deletes what names events and no room, a few hundred events at a time and before the events themselves. */
  readonly deleteForEvents?: (writer: AnyWriter, nids: readonly number[]) => Promise<void>;
  /** Everything is deleted: what is in memory goes, too. */
  readonly onPurged?: (room: PurgedRoom) => void;
}
