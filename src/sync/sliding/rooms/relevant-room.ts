import type { RoomRequest, RoomResult } from './room-request.ts';

/** A room that an answer is about, whether it has anything to say of it or not. */
export interface RelevantRoom {
  readonly request: RoomRequest;
  readonly result: RoomResult;
  /** The client names it, besides its lists. */
  readonly isSubscribed: boolean;
  /** Bits of `RoomPart`: what may have changed after the client's position. */
  readonly parts: number;
}
