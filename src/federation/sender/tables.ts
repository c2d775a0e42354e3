/** The tables of what is to be sent to other servers. */
export interface SenderTables {
  /** EDUs that must arrive: rows go when their destination has acknowledged them. */
  federation_outbox: {
    destination: string;
    /** Orders the EDUs of a destination. */
    id: number;
    type: string;
    /** The content as canonical JSON. */
    content: string;
    /** Milliseconds since the epoch. */
    added_ts: number;
  };
  /** Rooms of which a destination lacks events. */
  destination_rooms: {
    destination: string;
    room_nid: number;
    /** The newest event that it is known to lack; there may be older ones. */
    stream: number;
  };
  /** How far events were delivered to each destination that was sent any. */
  destination_positions: {
    destination: string;
    /** Everything on the stream of rooms up to here was delivered, or is noted in `destination_rooms`. */
    stream: number;
    /** When a transaction was last acknowledged, in milliseconds since the epoch. */
    sent_ts: number;
  };
}
