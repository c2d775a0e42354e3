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
    /** The newest event that is for it; there may be older ones that it lacks as well. */
    event_nid: number;
    /** Where that is on the stream of rooms. */
    stream: number;
    /** Up to here on the stream there is nothing that it lacks: ends of the history have arrived, or were not missed. */
    arrived_stream: number;
  };
  /** How far events were delivered to each destination that was sent any. */
  destination_positions: {
    destination: string;
    /** The newest event on the stream of rooms that was delivered in its turn. */
    stream: number;
    /** When a transaction was last acknowledged, in milliseconds since the epoch. */
    sent_ts: number;
  };
}
