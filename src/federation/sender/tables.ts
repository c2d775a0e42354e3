/** Tables of pending events and EDUs for other servers. */
export interface SenderTables {
  /** Durable EDUs: a row is deleted when its destination has acknowledged it. */
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
  /** Rooms with events that a destination lacks. */
  destination_rooms: {
    destination: string;
    room_nid: number;
    /** The newest event that the destination lacks; it may lack older events as well. */
    event_nid: number;
    /** Position of that event on the stream of rooms. */
    stream: number;
    /**
     * Stream position up to which no event needs to be sent: the destination has received the forward extremities at
     * that position, and can request earlier events.
     */
    arrived_stream: number;
  };
  /** The stream position up to which each destination has received events. */
  destination_positions: {
    destination: string;
    /** Position on the stream of rooms of the newest acknowledged event, except for events sent to catch up. */
    stream: number;
    /** When that event was acknowledged, in milliseconds since the epoch. */
    sent_ts: number;
  };
}
