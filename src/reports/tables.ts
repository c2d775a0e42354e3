/** The tables of reports. */
export interface ReportTables {
  reports: {
    id: number;
    /** `event`, `room` or `user`. */
    kind: string;
    /** Milliseconds since the epoch. */
    received_ts: number;
    reporter: string;
    /** Set for events and rooms. */
    room_id: string | null;
    /** Set for events. */
    event_id: string | null;
    /** Set for events (the sender) and users. */
    user_id: string | null;
    reason: string | null;
    /** From -100 (most offensive) to 0, for events that clients of earlier versions of the specification report. */
    score: number | null;
  };
}
