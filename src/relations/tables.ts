/** The tables of relations. */
export interface RelationTables {
  /** One row per event on a timeline that relates to another; gone when it is redacted. */
  event_relations: {
    child_nid: number;
    room_nid: number;
    /** The event that it relates to, whether this server knows that or not. */
    parent_id: string;
    rel_type: string;
    /** Type and sender of the child. */
    type: string;
    sender: string;
    /** What an annotation says. */
    key: string | null;
    /** Milliseconds since the epoch, as the child's sender says. */
    ts: number;
    /** Place of the child in the room's history. */
    depth: number;
    stream: number;
  };
  /** One row per thread, to list them by their last replies. */
  threads: {
    room_nid: number;
    root_id: string;
    /** Place of the last reply on the stream; null when no reply is left. */
    latest_stream: number | null;
  };
}
