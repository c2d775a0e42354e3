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

/** What `rooms.partial_state` holds: what is known of the room, or since when its state is complete. */
export type PartialStateColumn = PartialState | { readonly completedAt: number };

export function parsePartialState(json: string | null): {
  readonly partial: PartialState | undefined;
  readonly completedAt: number;
} {
  const column = json === null ? { completedAt: 0 } : (JSON.parse(json) as PartialStateColumn);
  return 'completedAt' in column
    ? { partial: undefined, completedAt: column.completedAt }
    : { partial: column, completedAt: 0 };
}
