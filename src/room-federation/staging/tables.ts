/** The table of events that wait for their places. */
export interface IncomingTables {
  incoming_events: {
    /** In the order of arrival. */
    id: number;
    event_id: string;
    room_id: string;
    /** The server that sent it. */
    origin: string;
    /** Milliseconds since the epoch, as all times here. */
    received_ts: number;
    /** How often it was tried in vain to give it a place. */
    attempts: number;
    /** Not to be tried before that; 0 for events that were not tried yet. */
    retry_ts: number;
    /** The PDU as canonical JSON; it was checked. */
    json: string;
  };
}
