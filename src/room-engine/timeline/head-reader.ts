import type { RoomHead } from './room-head.ts';

/** Gives out the heads of rooms for reading. */
export interface HeadReader {
  /** Returns the head when it is in memory. */
  peek(roomId: string): RoomHead | undefined;
  /** Returns the head of a room; `undefined` when this server does not know the room. */
  get(roomId: string): Promise<RoomHead | undefined>;
}
