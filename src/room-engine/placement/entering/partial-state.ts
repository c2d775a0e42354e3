/** Describes a room that was joined with partial state, until its state is complete. */
export interface PartialState {
  /** The servers that were in the room when this server joined, from the `send_join` response. */
  readonly servers: readonly string[];
  /** The resident server that answered `send_join` and has the whole state. */
  readonly from: string;
  /** The join of the local user. Members are missing in the state before it. */
  readonly joinEventId: string;
}

/** A room whose state is partial. */
export interface PartialRoom extends PartialState {
  readonly roomId: string;
}

/**
 * The JSON of `rooms.partial_state`: the partial state, or the position at which the state became complete.
 */
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
