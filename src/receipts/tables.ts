/** The tables of receipts. */
export interface ReceiptTables {
  receipts: {
    room_id: string;
    user_id: string;
    type: string;
    /** Empty for receipts that hold for the whole room. */
    thread_id: string;
    event_id: string;
    /** Where the event is on the stream of rooms; null while this server does not know the event. */
    event_stream: number | null;
    /** Milliseconds since the epoch. */
    ts: number;
    /** Where the receipt is on the stream of receipts. */
    position: number;
  };
}
