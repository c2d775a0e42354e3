/** The tables of relations. */
export interface RelationTables {
  /** One row per event on a timeline that relates to another event; deleted when the relating event is redacted. */
  event_relations: {
    child_nid: number;
    room_nid: number;
    /** The parent event, which may be unknown to this server. */
    parent_id: string;
    rel_type: string;
    /** Type of the child. */
    type: string;
    /** Sender of the child. */
    sender: string;
    /** Key of an annotation. */
    key: string | null;
    /** `origin_server_ts` of the child. */
    ts: number;
    /** Depth of the child. */
    depth: number;
    /** Position of the child on the timeline; negative for backfilled events. */
    stream: number;
  };
  /** One row per thread, to list threads by their latest replies. */
  threads: {
    room_nid: number;
    root_id: string;
    /** Stream position of the latest reply; null when all replies are redacted. */
    latest_stream: number | null;
  };
}
