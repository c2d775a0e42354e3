/** The sent state of connections, so that positions survive a restart. */
export interface SlidingSyncTables {
  sliding_sync_connections: {
    id: number;
    user_id: string;
    /** Empty for access tokens without a device. */
    device_id: string;
    conn_id: string;
    /** The oldest generation whose position is valid. */
    floor: number;
    /** JSON array of required states as texts; rooms refer to them by index. */
    states: string;
    /** When it was last written, in milliseconds since the epoch. */
    used_ts: number;
  };
  /** The parts of a room that were sent up to a generation: the newest row up to the client's generation is valid. */
  sliding_sync_rooms: {
    connection: number;
    /** 0 for what does not belong to a room. */
    room_nid: number;
    generation: number;
    /** For each part: -2 never sent, -1 all sent, otherwise the position up to which it was sent. */
    timeline: number;
    receipts: number;
    account_data: number;
    timeline_limit: number;
    /** Index into the connection's `states`. */
    state: number;
  };
}
