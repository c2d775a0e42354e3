/** The table of staged events. */
export interface IncomingTables {
  incoming_events: {
    /** Grows in order of arrival. */
    id: number;
    event_id: string;
    room_id: string;
    /** The server that sent the event. */
    origin: string;
    /** Milliseconds since the epoch, like all times here. */
    received_ts: number;
    /** The number of failed attempts to process the event. */
    attempts: number;
    /** When the next attempt is due; 0 before the first attempt. */
    retry_ts: number;
    /** The PDU as canonical JSON, after checks 1 to 3 of "Checks performed on receipt of a PDU". */
    json: string;
  };
}
