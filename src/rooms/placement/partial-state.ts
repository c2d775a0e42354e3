/** What is known of a room that was joined the fast way, until its state is complete. */
export interface PartialState {
  /** The servers that were in the room when this server joined. */
  readonly servers: readonly string[];
  /** The server that helped with joining, and has the rest of the state. */
  readonly from: string;
  /** The event that joined: the state before it is what is missing. */
  readonly joinEventId: string;
}

/** A room whose state is not complete. */
export interface PartialRoom extends PartialState {
  readonly roomId: string;
}
