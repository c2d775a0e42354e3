import type { JsonValue, RoomEvent } from '../protocol/index.ts';

/**
 * Checks of events of remote users, in addition to the checks of the specification; supplied by modules. Where a
 * function is absent, nothing is checked. A check limits its own running time, because the other events of the room
 * wait.
 */
export interface ReceivedEventChecks {
  /**
   * Returns whether a received event is dropped. Called after the check of its format and before that of its
   * signatures.
   */
  readonly isDropped?: ((event: RoomEvent) => Promise<boolean>) | undefined;
  /** Returns why an event is soft-failed; `undefined` when it is not. */
  readonly softFailure?: ((event: RoomEvent) => Promise<string | undefined>) | undefined;
}

/**
 * Checks an invite of a local user by a remote user.
 * @param roomState unverified state events of the room
 * @throws MatrixError when the invite is refused
 */
export type CheckReceivedInvite = (event: RoomEvent, roomState: readonly JsonValue[]) => Promise<void>;
