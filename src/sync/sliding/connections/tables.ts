/**
 * Tables of the data that each sliding sync connection has sent, so that its positions stay valid after a restart. Each
 * response has a generation, a number that its position (`pos`) contains.
 */
export interface SlidingSyncTables {
  sliding_sync_connections: {
    id: number;
    user_id: string;
    /** Empty for access tokens without a device. */
    device_id: string;
    conn_id: string;
    /** The oldest generation that a request may continue from. */
    floor: number;
    /**
     * JSON array of the different `required_state` parameters, each as a text; `sliding_sync_rooms.state` is an index
     * into it.
     */
    states: string;
    /** When the connection was last written, in milliseconds since the epoch. */
    used_ts: number;
  };
  /**
   * The parts of a room that had been sent up to a generation. A room has several rows; for a request from generation
   * N, the row with the largest generation up to N is read.
   */
  sliding_sync_rooms: {
    connection: number;
    /** 0 for data that belong to no room. */
    room_nid: number;
    generation: number;
    /**
     * `timeline`, `receipts` and `account_data`: -2 when that part was never sent, -1 when all of it was sent.
     * Otherwise the part was sent up to this position.
     */
    timeline: number;
    receipts: number;
    account_data: number;
    timeline_limit: number;
    /** Index into the connection's `states`. */
    state: number;
  };
}
