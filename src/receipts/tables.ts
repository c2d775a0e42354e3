/** The tables of receipts. */
export interface ReceiptTables {
  receipts: {
    room_id: string;
    user_id: string;
    type: string;
    /** Empty for receipts of the whole room. */
    thread_id: string;
    event_id: string;
    /** The position of the event on the stream of rooms; null while the event is unknown here. */
    event_stream: number | null;
    /** Milliseconds since the epoch. */
    ts: number;
    /** The position of the receipt on the stream of receipts. */
    position: number;
  };
}
