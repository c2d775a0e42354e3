/** Describes a room that was joined with partial state, until its state is complete. */
export interface PartialState {
  /** The servers that were in the room when this server joined, from the `send_join` response. */
  readonly servers: readonly string[];
  /** The resident server that answered `send_join` and has the whole state. */
  readonly from: string;
  /**
   * Position on the stream since which the state lacks only events whose keys could not be fetched; 0 if that was so at
   * the join. Absent while members are missing.
   */
  readonly membersAt?: number;
  /** The join of the local user. Members or other state events are missing in the state before it. */
  readonly joinEventId: string;
}

/** A room whose state is partial. */
export interface PartialRoom extends PartialState {
  readonly roomId: string;
}

/** A room whose partial state became complete. */
export interface CompletedRoom {
  readonly roomId: string;
  readonly roomNid: number;
}

/** The data about a partial state that stay stored after the state became complete. */
export interface FormerPartialState {
  /** Position of the join on the stream. */
  readonly joinedAt: number;
  /** The servers that counted as servers of the room until its state became complete. */
  readonly servers: readonly string[];
  /** `PartialState.membersAt` */
  readonly membersAt?: number;
}

/** The JSON of `rooms.partial_state`: the partial state, or the position at which the state became complete. */
export type PartialStateColumn =
  | PartialState
  | ({ readonly completedAt: number } & Partial<FormerPartialState>);

/** The partial state of a room, or the position at which its state became complete. */
interface StateCompleteness {
  readonly partial: PartialState | undefined;
  /** `RoomHead.completedAt` */
  readonly completedAt: number;
  readonly formerPartial?: FormerPartialState | undefined;
}

/** Parses the column `rooms.partial_state`. It is null where the state was never partial. */
export function parsePartialState(json: string | null): StateCompleteness {
  const column = json === null ? { completedAt: 0 } : (JSON.parse(json) as PartialStateColumn);
  if (!('completedAt' in column)) return { partial: column, completedAt: column.membersAt ?? 0 };
  const { completedAt, joinedAt = completedAt, servers, membersAt } = column;
  const formerPartial = servers && { joinedAt, servers, ...(membersAt !== undefined && { membersAt }) };
  return { partial: undefined, completedAt, formerPartial };
}
