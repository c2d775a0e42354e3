/** The tables of rooms. A `nid` is the number of an event, a room or a state key inside this database. */
export interface RoomTables {
  rooms: {
    room_nid: number;
    room_id: string;
    /** Unverified until this server has entered the room: the version that the first invite claimed. */
    version: string;
    /** JSON array of the nids of the forward extremities. */
    extremities: string;
    /** State group of the current state; null until this server has entered the room. */
    state_group: number | null;
    created_ts: number;
    /** JSON of `PartialStateColumn`; null where the room was entered with its whole state. */
    partial_state: string | null;
    /**
     * JSON array with the nids of former forward extremities, newest last; null without any. The room had them when the
     * last local user left or was removed. A local user has joined again since then, but no newer event refers to them.
     */
    former_extremities: string | null;
  };
  /**
   * Out-of-band memberships: invites, knocks and leaves of local users in rooms that this server is not in. Only their
   * signatures were checked, so they do not belong to the history of the room. The room version of each is the version
   * that the other server claimed. `user_id` is empty for events that were superseded before this table existed.
   * `server` is the server that sent the invite or received the knock; it is empty for leaves.
   */
  outside_events: {
    nid: number;
    room_nid: number;
    event_id: string;
    user_id: string;
    server: string;
    version: string;
    json: string;
  };
  /** One row per known event, including rejected events and outliers. */
  events: {
    nid: number;
    event_id: string;
    room_nid: number;
    depth: number;
    /**
     * Position on the timeline: positive for sent and received events, negative for backfilled events, null for
     * outliers, rejected and soft-failed events. For an event that was placed when it was first stored, the position is
     * the nid.
     */
    stream: number | null;
    /** State group after the event; null while it is not known. */
    state_group: number | null;
    /** State group before the event, where it differs from the group after it. */
    state_before: number | null;
    /**
     * nid of the state event that this event replaced; null for message events and for the first event of a state key.
     */
    replaces: number | null;
    /** Bits of `EventFlag`. */
    flags: number;
    /** nid of the redaction that took effect. */
    redacted_by: number | null;
    /** The PDU as JSON. */
    json: string;
  };
  /** `origin_server_ts` of timeline events, in milliseconds since the epoch, as their senders claimed. */
  event_times: { room_nid: number; ts: number; nid: number };
  /** Events that were placed at a position other than their nid: later than they were stored, or backfilled. */
  event_places: { position: number; nid: number };
  /** The auth events of state events. */
  event_auth: { event_nid: number; auth_nid: number };
  /** The events that timeline events have among their `prev_events`, and that are not on the timeline themselves. */
  backward_extremities: {
    room_nid: number;
    event_id: string;
    /**
     * How many more backfill responses, for this event and the events before it, may be fetched without a request of a
     * client, see `MissedHistory`. Null for history before this server's first join: only a request of a client fetches
     * this history.
     */
    backfills_left: number | null;
    /** nid of an event that has `event_id` among its `prev_events`. */
    referenced_by: number | null;
    /** Number of failed backfill attempts. */
    attempts: number;
    /** End of the backoff, in milliseconds since the epoch. */
    retry_ts: number;
  };
  /** Redactions whose targets are not stored yet. */
  pending_redactions: { target_id: string; redaction_nid: number };
  /** The stripped state that a remote server sent a user with an invite or a knock, as a JSON array. */
  stripped_state: { room_nid: number; user_id: string; json: string };
  /**
   * Redacted events whose original content is still stored; `redacted_ts` is the time of the redaction in
   * milliseconds since the epoch.
   */
  redacted_events: { event_nid: number; redacted_ts: number };
  state_keys: { nid: number; type: string; state_key: string };
  /** `ordinal`: the number of the group in its chain, see `GroupChain`. */
  state_groups: { id: number; room_nid: number; ordinal: number };
  /** The predecessor of each group that is not the root of a chain. */
  state_group_edges: { id: number; prev_id: number };
  /** The deltas of the groups. `event_nid` 0: the entry is removed. */
  state_groups_state: { group_id: number; key_nid: number; event_nid: number };
  /** `stream`: position at which the entry was set. */
  current_state: {
    room_nid: number;
    key_nid: number;
    event_nid: number;
    membership: string | null;
    stream: number;
  };
  /** Changes of the current state, for incremental sync. `event_nid` null: the entry was removed. */
  state_deltas: { stream: number; room_nid: number; key_nid: number; event_nid: number | null };
  memberships: {
    user_id: string;
    room_nid: number;
    membership: string;
    event_nid: number;
    /** Position at which the membership was set. */
    stream: number;
    /** 1 when the user has forgotten the room. */
    forgotten: number;
  };
  /**
   * Transactions of clients; `scope` stands for the user and device, and `txn_id` is the transaction id with a hash of
   * the request path in front of it.
   */
  event_transactions: { scope: number; event_nid: number; txn_id: string };
  /**
   * Positions of the streams at some times (milliseconds since the epoch). The age of a transaction id follows from
   * them, so its row needs no time.
   */
  transaction_marks: { position: number; ts: number };
  room_aliases: { alias: string; room_id: string; creator: string };
  /** Rooms that local users must not enter, and the administrators who blocked them. */
  blocked_rooms: { room_id: string; blocked_by: string };
  /** Rooms in the public directory; `network` is empty for the server's own list. */
  published_rooms: { room_id: string; network: string };
}

/**
 * Properties of an event besides its content.
 * `outlier`: it has no position on the timeline, for instance because it is rejected or soft-failed.
 * `distribute`: this server accepted it from a remote user in a handshake, and sends it to the other servers
 * of the room.
 * `resolves`: it changed the current state in more than its own entry, because state was resolved.
 * `followsGap`: when it was placed, events before it were missing on the timeline.
 * `withheld`: a redaction that takes no effect, or whose target is not stored yet; clients never see it.
 * `acceptedElsewhere`: an event of a local user that a remote server accepted and passes on.
 */
export const EventFlag = {
  rejected: 1,
  softFailed: 2,
  outlier: 4,
  distribute: 8,
  resolves: 16,
  followsGap: 32,
  withheld: 64,
  acceptedElsewhere: 128,
} as const;
