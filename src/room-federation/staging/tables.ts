/** The table of staged events. */
export interface IncomingTables {
  incoming_events: {
    /** Grows in order of arrival. */
    id: number;
    event_id: string;
    room_id: string;
    /** The server that sent it. */
    origin: string;
    /** Milliseconds since the epoch, like all times here. */
    received_ts: number;
    /** The number of failed attempts to process it. */
    attempts: number;
    /** When it is due; 0 before the first attempt. */
    retry_ts: number;
    /** The PDU as canonical JSON, after checks 1 to 3. */
    json: string;
  };
}
