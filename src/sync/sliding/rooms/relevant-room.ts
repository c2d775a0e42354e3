import type { RoomRequest, RoomResult } from './room-request.ts';

/** A room that an answer may contain, with or without new data. */
export interface RelevantRoom {
  readonly request: RoomRequest;
  readonly result: RoomResult;
  /** Whether the room is in `room_subscriptions` of the request; it may be in lists as well. */
  readonly isSubscribed: boolean;
  /**
   * What may have changed after the client's position: a mask with one bit for the timeline and one for each sync
   * source (`SourceList`).
   */
  readonly changedBits: number;
}
