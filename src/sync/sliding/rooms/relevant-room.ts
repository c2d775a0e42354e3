import type { RoomRequest, RoomResult } from './room-request.ts';

/** A room that an answer is about, whether it has anything to say of it or not. */
export interface RelevantRoom {
  readonly request: RoomRequest;
  readonly result: RoomResult;
  /** The client names it, besides its lists. */
  readonly isSubscribed: boolean;
  /** What may have changed after the client's position: bits of the timeline and of sources. */
  readonly parts: number;
}
