/** The tables of rooms. `nid` is a number that stands for an event, a room or a state key inside this database. */
export interface RoomTables {
  rooms: {
    room_nid: number;
    room_id: string;
    /** While the room is known from outside only: what the first who spoke of it said. */
    version: string;
    /** JSON array of the nids of the forward extremities. */
    extremities: string;
    /** State group of the current state; null while the room is known from outside only. */
    state_group: number | null;
    created_ts: number;
    /** JSON of `PartialState` while the state of a room that was joined the fast way is not complete. */
    partial_state: string | null;
    /**
     * JSON array of the nids of the events that were forward extremities when all local users had left the room, or had
     * been removed, and that nothing leads to since it was entered again; newest last. Null where there are none.
     */
    loose_ends: string | null;
  };
  /**
   * What users of this server are to rooms that it is not in, as others have said or were told: invites, knocks, and
   * their ends. Nobody has checked more of them than their signatures, so they are no events of the room, and each is
   * of the version that came with it. `user_id` is empty where that is of no interest any more, `server` says who has
   * invited or taken the knock, and is empty for ends.
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
  /** One row per event that was seen, rejected ones and outliers included. */
  events: {
    nid: number;
    event_id: string;
    room_nid: number;
    depth: number;
    /**
     * Place on the timeline: positive as sent or received, negative when backfilled, null for outliers, rejected and
     * soft-failed events. Of events that got their place when they were first seen it is the nid.
     */
    stream: number | null;
    /** State after the event; null while it is not known. */
    state_group: number | null;
    /** State before the event where it differs from the state after it. */
    state_before: number | null;
    /** nid of the state event whose place this one took; null for the first of its kind, and for messages. */
    replaces: number | null;
    /** Bits of `EventFlag`. */
    flags: number;
    /** nid of the redaction that took effect. */
    redacted_by: number | null;
    /** The PDU as JSON. */
    json: string;
  };
  /** When the events of timelines were sent, in milliseconds since the epoch, as their senders say. */
  event_times: { room_nid: number; ts: number; nid: number };
  /** Events that got their place on a timeline at a position other than their nid: late, or backfilled. */
  event_places: { position: number; nid: number };
  /** The auth events of state events. */
  event_auth: { event_nid: number; auth_nid: number };
  /** Events that events of a timeline name as their `prev_events` and that are not on the timeline. */
  backward_extremities: {
    room_nid: number;
    event_id: string;
    /**
     * How many more answers of other servers may be taken on the way back from here though nobody reads them, see
     * `MissedHistory`; null for what was said before this server came, which is fetched only when it is read.
     */
    answers_left: number | null;
    /** The event that names it. */
    named_by: number | null;
    /** How often it was asked for in vain. */
    attempts: number;
    /** Not to be asked for before that, in milliseconds since the epoch. */
    retry_ts: number;
  };
  /** Redactions whose targets have not been seen yet. */
  pending_redactions: { target_id: string; redaction_nid: number };
  /** What a user was shown of a room by another server, with an invite or a knock: JSON array of stripped state. */
  stripped_state: { room_nid: number; user_id: string; json: string };
  /** Redacted events of which everything is kept yet; the time is that of the redaction. */
  redacted_events: { event_nid: number; redacted_ts: number };
  state_keys: { nid: number; type: string; state_key: string };
  state_groups: { id: number; room_nid: number; ordinal: number };
  state_group_edges: { id: number; prev_id: number };
  state_groups_state: { group_id: number; key_nid: number; event_nid: number };
  /** `stream`: where on the stream the entry became what it is. */
  current_state: {
    room_nid: number;
    key_nid: number;
    event_nid: number;
    membership: string | null;
    stream: number;
  };
  /** What became of the current state, for incremental sync. `event_nid` null: the entry was removed. */
  state_deltas: { stream: number; room_nid: number; key_nid: number; event_nid: number | null };
  memberships: {
    user_id: string;
    room_nid: number;
    membership: string;
    event_nid: number;
    stream: number;
    /** 1 when the user has forgotten the room. */
    forgotten: number;
  };
  /** Transaction ids of clients; `scope` stands for the user and device. */
  event_transactions: { scope: number; event_nid: number; txn_id: string };
  /** Where the streams were at some times, so that transaction ids need not carry theirs. */
  transaction_marks: { position: number; ts: number };
  room_aliases: { alias: string; room_id: string; creator: string };
  /** Rooms in the public directory; `network` is empty for the server's own list. */
  published_rooms: { room_id: string; network: string };
}

/**
 * What is known of an event besides its content.
 * `distribute`: this server accepted it from a user of another one, in a handshake, and has to pass it on to the
 * servers of the room. `resolves`: with it the current state changed in other ways than by taking the event in.
 * `followsGap`: when it got its place, events before it were missing on the timeline.
 */
export const EventFlag = {
  rejected: 1,
  softFailed: 2,
  outlier: 4,
  distribute: 8,
  resolves: 16,
  followsGap: 32,
} as const;
