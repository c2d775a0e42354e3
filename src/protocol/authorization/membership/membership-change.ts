import type { RoomEvent } from '../../event.ts';
import type { RoomState } from '../room-state.ts';

/** An `m.room.member` event to decide on, and all that the decision depends on. */
export interface MembershipChange {
  readonly event: RoomEvent;
  /** The user whose membership changes: the state key. */
  readonly target: string;
  readonly room: RoomState;
}
