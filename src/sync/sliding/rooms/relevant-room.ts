import type { RoomRequest, RoomResult } from './room-request.ts';

/** A room that an answer may contain, with or without new data. */
export interface RelevantRoom {
  readonly request: RoomRequest;
  readonly result: RoomResult;
  /** Whether the room is in `room_subscriptions` of the request; it may be in lists as well. */
  readonly isSubscribed: boolean;
  /** The bits of the timeline and of the sources that may have changed after the client's position. */
  readonly changedBits: number;
}
